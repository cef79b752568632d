// Images against what torchvision and Pillow make of them, and what is refused.
#include "worker/data/image_folder.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/array_file.h"
#include "worker/data/image_file.h"
#include "worker/data/image_scale.h"
#include "worker/data/test_files.h"
#include "worker/data/test_reading.h"

namespace lockstep::worker {
namespace {

using absl::StatusCode;

constexpr char kGolden[] = "tests/conformance/pytorch/images/";
constexpr int64_t kAllMemory = int64_t{1} << 30;

Tensor Golden(const std::string& name) {
  auto file = ReadArrayFile(absl::StrCat(kGolden, name), job::DataFiles::FORMAT_NPY, kAllMemory);
  INFO(file.status());
  REQUIRE(file.ok());
  return std::move(file->array);
}

job::DataFiles Folder(const std::string& path) {
  job::DataFiles files;
  files.set_inputs(path);
  return files;
}

job::DataFiles OfSize(const std::string& path, int64_t height, int64_t width) {
  job::DataFiles files = Folder(path);
  files.add_image_size(height);
  files.add_image_size(width);
  return files;
}

FeedOptions AnyClass() { return {.label_classes = kAnyClasses}; }

absl::StatusOr<Image> Decoded(const std::string& bytes, const std::string& path) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<ImageFile> file, ImageFile::Open(bytes, path));
  return file->Decode(/*gray=*/false);
}

std::string PngBytes(int width, int height, int format, const std::vector<uint8_t>& pixels) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(width);
  png.height = static_cast<png_uint_32>(height);
  png.format = static_cast<png_uint_32>(format);
  png_alloc_size_t size = 0;
  REQUIRE(png_image_write_to_memory(&png, nullptr, &size, 0, pixels.data(), 0, nullptr) != 0);
  std::string bytes(size, '\0');
  REQUIRE(png_image_write_to_memory(&png, bytes.data(), &size, 0, pixels.data(), 0, nullptr) != 0);
  return bytes;
}

std::string SmallPng() { return PngBytes(2, 1, PNG_FORMAT_RGB, {1, 2, 3, 4, 5, 6}); }

std::string JpegBytes(int width, int height) {
  const std::vector<uint8_t> pixels(static_cast<size_t>(width * height * 3), 77);
  tjhandle coder = tjInitCompress();
  unsigned char* made = nullptr;
  unsigned long size = 0;  // NOLINT: the type of the library
  REQUIRE(tjCompress2(coder, pixels.data(), width, 0, height, TJPF_RGB, &made, &size, TJSAMP_420, 90, 0) == 0);
  std::string bytes(reinterpret_cast<char*>(made), size);
  tjFree(made);
  tjDestroy(coder);
  return bytes;
}

// Two classes, each with one image.
struct Classes {
  Classes() {
    std::filesystem::create_directories(files.directory() + "/cat");
    std::filesystem::create_directories(files.directory() + "/dog");
    files.Write("cat/1.png", SmallPng());
    files.Write("dog/1.png", SmallPng());
  }
  TestFiles files;
};

}  // namespace

TEST_CASE("images: a folder is read as torchvision reads it", "[data]") {
  struct Case {
    std::string name;
    int64_t resize;
    bool gray;
  };
  for (const Case& c : {Case{"cover", 0, false}, Case{"resized", 15, false}, Case{"gray", 0, true}}) {
    CAPTURE(c.name);
    job::DataFiles files = OfSize(absl::StrCat(kGolden, "folder"), 12, 10);
    if (c.resize > 0) files.set_image_resize(c.resize);
    files.set_image_gray(c.gray);
    const auto source = MustOpen(files, AnyClass());
    const Tensor golden = Golden(c.name + ".npy");
    const std::vector<float> read = AllOf<float>(*source, "inputs");

    REQUIRE(source->fields()[0].shape == Shape{c.gray ? 1 : 3, 12, 10});
    REQUIRE(read.size() == golden.elements<uint8_t>().size());
    // Decoders of JPEG may differ by a little, the first three images; nothing else may.
    const size_t jpeg = read.size() / 9 * 3;
    int furthest = 0, differing = 0;
    for (size_t i = 0; i < read.size(); ++i) {
      const int difference = std::abs(static_cast<int>(read[i]) - golden.elements<uint8_t>()[i]);
      (i < jpeg ? furthest : differing) = std::max(i < jpeg ? furthest : differing, difference);
    }
    CHECK(differing == 0);
    CHECK(furthest <= 2);
    const Tensor labels = Golden("labels.npy");
    CHECK(AllOf<int64_t>(*source, "labels") ==
          std::vector<int64_t>(labels.elements<int64_t>().begin(), labels.elements<int64_t>().end()));
  }
}

TEST_CASE("images: without labels the folders of classes may be missing", "[data]") {
  Classes classes;
  classes.files.Write("0.png", PngBytes(2, 1, PNG_FORMAT_RGB, {9, 9, 9, 9, 9, 9}));
  FeedOptions options;
  options.labels = Labels::kNone;
  const auto source = MustOpen(Folder(classes.files.directory()), options);

  StoredData stored;
  REQUIRE(OpenDataSource(OfSize(absl::StrCat(kGolden, "folder/c10"), 8, 8), options, &stored).ok());
  CHECK(stored.classes.empty());
  CHECK(source->num_samples() == 3);
  CHECK_FALSE(source->has_labels());
  CHECK(AllOf<float>(*source, "inputs") == std::vector<float>{9, 9, 9, 9, 9, 9, 1, 4, 2, 5, 3, 6, 1, 4, 2, 5, 3, 6});
  CheckRefused(Folder(classes.files.directory()), AnyClass(), StatusCode::kInvalidArgument, "0.png: lies in no class");
}

TEST_CASE("images: what cannot be read is named", "[data]") {
  Classes classes;
  const auto refused = [&](const std::string& name, const std::string& bytes, StatusCode code,
                           const std::string& part) {
    const std::string path = classes.files.Write(absl::StrCat("cat/", name), bytes);
    CheckRefused(Folder(classes.files.directory()), AnyClass(), code, absl::StrCat("cat/", name, ": ", part));
    std::filesystem::remove(path);
  };
  const std::string jpeg = JpegBytes(64, 48), png = SmallPng();
  refused("2.jpg", jpeg, StatusCode::kInvalidArgument, "has 48 x 64 pixels");
  refused("0.jpg", jpeg.substr(0, jpeg.size() / 2), StatusCode::kDataLoss, "the image is truncated or corrupt: ");
  refused("0.jpg", jpeg.substr(0, 20), StatusCode::kDataLoss, "the image is truncated or corrupt: ");
  refused("0.png", png.substr(0, png.size() - 20), StatusCode::kDataLoss, "the image is truncated or corrupt: ");
  refused("0.png", "", StatusCode::kInvalidArgument, "is neither a JPEG nor a PNG image");
  refused("0.png", "GIF89a", StatusCode::kInvalidArgument, "is neither a JPEG nor a PNG image");
  refused("0.webp", "", StatusCode::kInvalidArgument, "only JPEG and PNG images are read");
  refused("0.png", PngBytes(1, 1, PNG_FORMAT_LINEAR_RGB, {1, 0, 2, 0, 3, 0}), StatusCode::kInvalidArgument,
          "the image has 16 bits per channel");

  std::filesystem::create_directory(classes.files.directory() + "/empty");
  CheckRefused(Folder(classes.files.directory()), AnyClass(), StatusCode::kNotFound, "/empty: the class has no image");
  TestFiles nothing;
  CheckRefused(Folder(nothing.directory()), AnyClass(), StatusCode::kNotFound, "has no JPEG or PNG image");
}

TEST_CASE("images: a JPEG that was cut off anywhere is refused", "[data]") {
  for (const char* const name : {"progressive.JPEG", "plain.jpg", "gray.jpg"}) {
    const std::string path = absl::StrCat(kGolden, "folder/B/", name);
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    REQUIRE(Decoded(bytes, path).ok());
    std::vector<size_t> taken;
    for (size_t size = 0; size < bytes.size(); ++size) {
      if (Decoded(bytes.substr(0, size), path).ok()) taken.push_back(size);
    }
    CAPTURE(name, bytes.size());
    CHECK(taken == std::vector<size_t>{});
  }
}

TEST_CASE("images: values of a PNG are those stored, whatever it says of its colour space", "[data]") {
  const std::string plain = PngBytes(2, 1, PNG_FORMAT_RGB, {10, 60, 110, 160, 210, 250});
  const std::vector<uint8_t> stored = Decoded(plain, "plain")->pixels;
  CHECK(stored == std::vector<uint8_t>{10, 60, 110, 160, 210, 250});
  // gAMA 1.0, behind the 33 bytes of signature and header.
  const std::string body("gAMA\0\1\x86\xa0", 8);
  const auto check = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(body.data()), 8));
  std::string chunk = std::string("\0\0\0\4", 4) + body;
  for (int shift = 24; shift >= 0; shift -= 8) chunk += static_cast<char>(check >> shift);
  for (const bool says_srgb : {false, true}) {
    std::string changed = plain.substr(0, 33) + chunk + plain.substr(33);
    const size_t srgb = changed.find("sRGB");
    if (!says_srgb && srgb != std::string::npos) changed.erase(srgb - 4, 13);
    CHECK(Decoded(changed, "changed")->pixels == stored);
  }
}

TEST_CASE("images: of many that are wrong the first is named, and memory is asked for before", "[data]") {
  Classes classes;
  for (int i = 0; i < 40; ++i) classes.files.Write(absl::StrCat("dog/", 100 + i, ".png"), i < 7 ? SmallPng() : "none");
  CheckRefused(Folder(classes.files.directory()), AnyClass(), StatusCode::kInvalidArgument, "dog/107.png: is neither");

  FeedOptions little = AnyClass();
  little.memory_limit_bytes = 42 * 6 - 1;
  CheckRefused(Folder(classes.files.directory()), little, StatusCode::kResourceExhausted, "42 images of 6 bytes");
}

TEST_CASE("images: folders that are linked to themselves end", "[data]") {
  Classes classes;
  const std::string cat = classes.files.directory() + "/cat";
  for (const char* const name : {"/a", "/b"}) std::filesystem::create_directory_symlink(cat, cat + name);
  CheckRefused(Folder(classes.files.directory()), AnyClass(), StatusCode::kInvalidArgument,
               "cat/a: links back to a folder that it lies in");
  for (const char* const name : {"/a", "/b"}) std::filesystem::remove(cat + name);
  std::filesystem::create_symlink("nowhere", cat + "/2.png");
  CheckRefused(Folder(classes.files.directory()), AnyClass(), StatusCode::kNotFound, "cat/2.png: cannot be read");
}

TEST_CASE("images: scaled sizes cover what is asked for", "[data]") {
  CHECK(ScaledSize({30, 40}, {12, 10}, 0) == ImageSize{12, 16});
  CHECK(ScaledSize({60, 20}, {12, 10}, 0) == ImageSize{30, 10});
  CHECK(ScaledSize({30, 40}, {12, 10}, 15) == ImageSize{15, 20});
  for (int64_t h = 1; h < 40; ++h) {
    for (int64_t w = 1; w < 40; ++w) {
      const ImageSize size = ScaledSize({h, w}, {12, 10}, 0);
      REQUIRE((size.height >= 12 && size.width >= 10));
      REQUIRE((size.height == 12 || size.width == 10));
    }
  }
  const Image image{.height = 1, .width = 2, .channels = 1, .pixels = {10, 250}};
  CHECK(ScaleImage(image, 3, 2).pixels == std::vector<uint8_t>{10, 250, 10, 250, 10, 250});
}

}  // namespace lockstep::worker
