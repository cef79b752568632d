// Images that stay in their files: the same pixels as those that are held, regions of them, and files that change.
#include "worker/data/image_files.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/data/array_file.h"
#include "worker/data/augmentation.h"
#include "worker/data/batch_reader.h"
#include "worker/data/data_lost.h"
#include "worker/data/test_files.h"
#include "worker/data/test_reading.h"

namespace lockstep::worker {
namespace {

constexpr char kExamples[] = "tests/conformance/pytorch/images/";
constexpr int64_t kRows = 12;
constexpr int64_t kColumns = 10;

// A copy of the example folder, which may be changed.
struct ImageCopies {
  ImageCopies() {
    std::filesystem::copy(absl::StrCat(kExamples, "folder"), files.directory(),
                          std::filesystem::copy_options::recursive);
  }
  job::DataFiles Left() const {
    job::DataFiles left;
    left.set_inputs(files.directory());
    left.add_image_size(kRows);
    left.add_image_size(kColumns);
    left.set_image_decode(job::DataFiles::IMAGE_DECODE_STEP);
    return left;
  }
  std::string Path(const std::string& name) const { return absl::StrCat(files.directory(), "/", name); }
  void Append(const std::string& name) const { std::ofstream(Path(name), std::ios::binary | std::ios::app) << "more"; }
  TestFiles files;
};

FeedOptions ClassLabels() { return {.label_classes = kAnyClasses}; }

}  // namespace

TEST_CASE("image files: their pixels and labels are those of images that are held", "[data]") {
  const ImageCopies copies;
  for (const int threads : {1, 3}) {
    for (const bool gray : {false, true}) {
      CAPTURE(threads, gray);
      FeedOptions options = ClassLabels();
      options.image_threads = threads;
      options.normalisation = {.scale = 1.0 / 255, .mean = {0.5}, .std = {0.25}};
      job::DataFiles left = copies.Left(), held = copies.Left();
      left.set_image_gray(gray);
      held.set_image_gray(gray);
      held.set_image_decode(job::DataFiles::IMAGE_DECODE_START);
      const auto from_files = MustOpen(left, options);
      const auto from_memory = MustOpen(held, options);

      CHECK(from_files->fields() == from_memory->fields());
      CHECK(from_files->classes() == from_memory->classes());
      CHECK(from_files->num_samples() == from_memory->num_samples());
      CHECK(AllOf<float>(*from_files, "inputs") == AllOf<float>(*from_memory, "inputs"));
      CHECK(AllOf<int64_t>(*from_files, "labels") == AllOf<int64_t>(*from_memory, "labels"));
      CHECK(from_files->has_regions());
      CHECK_FALSE(from_memory->has_regions());
    }
  }
}

TEST_CASE("image files: the hash is over every byte of them and over what becomes of them", "[data]") {
  const ImageCopies copies;
  const std::string before = MustOpen(copies.Left(), ClassLabels())->content_hash();
  CHECK(MustOpen(copies.Left(), ClassLabels())->content_hash() == before);
  job::DataFiles smaller = copies.Left();
  smaller.set_image_size(0, kRows - 1);
  CHECK(MustOpen(smaller, ClassLabels())->content_hash() != before);
  job::DataFiles scaled = copies.Left();
  scaled.set_image_resize(20);
  CHECK(MustOpen(scaled, ClassLabels())->content_hash() != before);

  job::DataFiles known = copies.Left();
  known.set_sha256(before);
  CHECK(MustOpen(known, ClassLabels())->num_samples() == 9);
  copies.Append("c9/bits.png");
  CHECK(MustOpen(copies.Left(), ClassLabels())->content_hash() != before);
  CheckRefused(known, ClassLabels(), absl::StatusCode::kInvalidArgument, "are not the data of this job");
}

TEST_CASE("image files: what cannot be decoded is found when a job starts, not when it is known", "[data]") {
  TestFiles files;
  std::filesystem::create_directory(files.directory() + "/a");
  const std::string whole = absl::StrCat(kExamples, "folder/a_b/colours.png");
  for (int i = 10; i < 50; ++i) std::filesystem::copy(whole, absl::StrCat(files.directory(), "/a/", i, ".png"));
  const std::string damaged = files.directory() + "/a/45.png";
  std::filesystem::resize_file(damaged, 200);  // the header is there
  std::vector<std::string> paths;
  for (int i = 10; i < 50; ++i) paths.push_back(absl::StrCat(files.directory(), "/a/", i, ".png"));
  const ImageReader::Options reading{.form = {.size = ImageSize{4, 4}}, .room = 1};

  const auto first = ImageFiles::Open(paths, {.reading = reading});
  CHECK(first.status().code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(first.status().message()), Catch::Contains(damaged));
  const auto again = ImageFiles::Open(paths, {.reading = reading, .decode_all = false});
  REQUIRE(again.ok());
  CHECK((*again)->Read({35}, nullptr, [](size_t, const uint8_t*) {}).code() == absl::StatusCode::kDataLoss);
  CHECK((*again)->Read({34, 36}, nullptr, [](size_t, const uint8_t*) {}).ok());
}

TEST_CASE("image files: a region is cut out and scaled as Pillow does", "[data]") {
  const ImageRegion regions[] = {
      {0, 0, {23, 17}}, {3, 5, {7, 9}}, {22, 16, {1, 1}}, {2, 0, {20, 4}}, {11, 1, {12, 16}}};
  auto golden = ReadArrayFile(absl::StrCat(kExamples, "regions.npy"), job::DataFiles::FORMAT_NPY, 1 << 20);
  REQUIRE(golden.ok());
  const auto files = ImageFiles::Open({absl::StrCat(kExamples, "folder/a_b/colours.png")},
                                      {.reading = {.form = {.size = ImageSize{kRows, kColumns}}}});
  REQUIRE(files.ok());
  const auto choose = [&](size_t i, ImageSize size) {
    CHECK(size == ImageSize{23, 17});
    return regions[i];
  };
  std::map<size_t, std::vector<uint8_t>> seen;
  for (size_t r = 0; r < 5; ++r) {
    const auto only = [&](size_t, ImageSize size) { return choose(r, size); };
    const RegionOfSample region = only;
    REQUIRE((*files)
                ->Read({0}, &region,
                       [&](size_t i, const uint8_t* image) {
                         CHECK(i == 0);
                         seen[r].assign(image, image + 3 * kRows * kColumns);
                       })
                .ok());
  }
  const absl::Span<const uint8_t> expected = golden->array.elements<uint8_t>();
  REQUIRE(expected.size() == 5 * 3 * kRows * kColumns);
  for (const auto& [r, image] : seen) {
    CAPTURE(r);
    const auto from = expected.begin() + static_cast<int64_t>(r * image.size());
    CHECK(std::vector<uint8_t>(from, from + static_cast<int64_t>(image.size())) == image);
  }
}

TEST_CASE("image files: one that changes is a loss of data, told in the place of its batch", "[data]") {
  const ImageCopies copies;
  const auto source = MustOpen(copies.Left(), ClassLabels());
  const SampleStream stream(1, source->num_samples());
  BatchReader reader(source.get(), &stream, {.global_batch_size = 9});
  reader.Seek(1, {0});
  REQUIRE(reader.Next().ok());
  copies.Append("a_b/small.png");
  // Batches that were read ahead are as they were.
  absl::StatusOr<const Batch*> next = reader.Next();
  while (next.ok()) next = reader.Next();
  CHECK(next.status().code() == absl::StatusCode::kDataLoss);
  CHECK(IsDataLost(next.status()));
  CHECK_THAT(std::string(next.status().message()),
             Catch::Contains("a_b/small.png: is not the file that it was when the data were opened"));
  CHECK_FALSE(reader.Next().ok());

  std::filesystem::copy(absl::StrCat(kExamples, "folder/a_b/small.png"), copies.Path("a_b/small.png"),
                        std::filesystem::copy_options::overwrite_existing);
  reader.Seek(3, {0});
  REQUIRE(reader.Next().ok());
  std::filesystem::remove(copies.Path("a_b/small.png"));
  reader.Seek(9, {0});
  next = reader.Next();
  CHECK(next.status().code() == absl::StatusCode::kNotFound);
  CHECK(IsDataLost(next.status()));
}

TEST_CASE("image files: what is meant for data that are held is refused", "[data]") {
  const ImageCopies copies;
  FeedOptions channels_last = ClassLabels();
  channels_last.form.transpose = {1, 2, 0};
  CheckRefused(copies.Left(), channels_last, absl::StatusCode::kInvalidArgument, "data.transpose is for data that are");
  FeedOptions integers = ClassLabels();
  integers.inputs = {{.name = "inputs", .dtype = DType::kI64, .shape = {3, kRows, kColumns}}};
  CheckRefused(copies.Left(), integers, absl::StatusCode::kInvalidArgument, "feed float32 inputs");
  job::DataFiles named = copies.Left();
  for (const char* const name : {"B", "a_b", "c10", "c8"}) named.add_classes(name);
  CheckRefused(named, ClassLabels(), absl::StatusCode::kInvalidArgument,
               "has the classes B, a_b, c10, c9, the job's are B, a_b, c10, c8");
  named.set_classes(3, "c9");
  CHECK(MustOpen(named, ClassLabels())->num_samples() == 9);
}

TEST_CASE("image files: room for decoding is kept, and one image alone may take more", "[data]") {
  // With room for none all still come, one after the other.
  const ImageCopies copies;
  FeedOptions options = ClassLabels();
  options.image_threads = 8;
  options.memory_limit_bytes = 20000;
  const auto source = MustOpen(copies.Left(), options);
  CHECK(AllOf<float>(*source, "inputs").size() == 9 * 3 * kRows * kColumns);
  // The largest picture: 30 x 40.
  CHECK(source->held_bytes() > ImageReader::BytesToDecode(1250));
}

}  // namespace lockstep::worker
