// How samples of a file become those of a model: shapes, and the order of their dimensions.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "worker/data/test_files.h"
#include "worker/data/test_reading.h"

namespace lockstep::worker {
namespace {

job::DataFiles Paths(const std::string& inputs, const std::string& labels) {
  job::DataFiles files;
  files.set_inputs(inputs);
  files.set_labels(labels);
  return files;
}

std::vector<float> InputValues(const DataSource& source, const std::vector<int64_t>& indices) {
  std::vector<float> out(indices.size() * static_cast<size_t>(NumElements(source.fields()[0].shape)));
  REQUIRE(source.Read(0, indices, {reinterpret_cast<std::byte*>(out.data()), out.size() * sizeof(float)}).ok());
  return out;
}

// Arrays of images, channels first and last, of 5 samples of [2, 3, 4].
struct Layouts {
  explicit Layouts(const TestFiles& files, const std::string& type, size_t size) {
    std::string first, last;
    for (int n = 0; n < 5; ++n) {
      for (int c = 0; c < 2; ++c) {
        for (int h = 0; h < 3; ++h) {
          for (int w = 0; w < 4; ++w) first += Element(n, c, h, w, size);
        }
      }
      for (int h = 0; h < 3; ++h) {
        for (int w = 0; w < 4; ++w) {
          for (int c = 0; c < 2; ++c) last += Element(n, c, h, w, size);
        }
      }
    }
    const std::string labels = files.Write("y.npy", NpyBytes(NpyHeader("|u1", "(5,)"), std::string("\0\1\0\1\0", 5)));
    channels_first = Paths(files.Write("first.npy", NpyBytes(NpyHeader(type, "(5, 2, 3, 4)"), first)), labels);
    channels_last = Paths(files.Write("last.npy", NpyBytes(NpyHeader(type, "(5, 3, 4, 2)"), last)), labels);
    flat = Paths(files.Write("flat.npy", NpyBytes(NpyHeader(type, "(5, 24)"), last)), labels);
  }

  static std::string Element(int n, int c, int h, int w, size_t size) {
    std::string bytes(size, '\0');
    bytes[0] = static_cast<char>(n * 24 + c * 12 + h * 4 + w);
    return bytes;
  }

  job::DataFiles channels_first;
  job::DataFiles channels_last;
  job::DataFiles flat;
};

TEST_CASE("data: dimensions in the order of the model, with the bits of data that is stored so", "[data]") {
  const TestFiles files;
  FeedOptions plain;
  plain.normalisation = {.scale = 1.0 / 255, .mean = {0.25, 0.5}, .std = {0.5, 0.125}};
  plain.inputs = {{"inputs", DType::kF32, {2, 3, 4}}};
  FeedOptions turned = plain;
  turned.form.transpose = {2, 0, 1};
  FeedOptions shaped = turned;
  shaped.form.reshape = {3, 4, 2};
  for (const auto& [type, size] : {std::pair{"|u1", 1}, {"<i2", 2}, {"<i4", 4}, {"<u8", 8}}) {
    INFO(type);
    const Layouts data(files, type, static_cast<size_t>(size));
    const std::vector<int64_t> samples = {3, 0, 4, 4, 1};

    const auto first = MustOpen(data.channels_first, plain);
    const auto last = MustOpen(data.channels_last, turned);
    const auto flat = MustOpen(data.flat, shaped);

    CHECK(InputValues(*last, samples) == InputValues(*first, samples));
    CHECK(InputValues(*flat, samples) == InputValues(*first, samples));
    CHECK(last->fields() == first->fields());
    // The hash is that of the file, whatever the job makes of it.
    FeedOptions as_stored = plain;
    as_stored.normalisation = {};
    as_stored.inputs = {};
    CHECK(last->content_hash() == MustOpen(data.channels_last, as_stored)->content_hash());
  }
}

TEST_CASE("data: another shape than the model's is refused, and the setting is named", "[data]") {
  const TestFiles files;
  const Layouts data(files, "|u1", 1);
  FeedOptions options;
  options.inputs = {{"inputs", DType::kF32, {2, 3, 4}}};
  const auto refused = [&](const job::DataFiles& paths, const std::string& part) {
    CheckRefused(paths, options, absl::StatusCode::kInvalidArgument, part);
  };

  refused(data.channels_last,
          "last.npy: one sample of inputs has the shape [3, 4, 2]; the model takes [2, 3, 4]. The "
          "dimensions come in another order: set data.transpose: [2, 0, 1]");
  refused(data.flat, "set data.reshape: [3, 4, 2] and data.transpose: [2, 0, 1]");
  options.inputs[0].shape = {24};
  refused(data.channels_first, "set data.reshape: [-1]");
  options.form.in_order = true;
  CHECK(OpenDataSource(data.channels_first, options).ok());
  // A setting that is for no input is a mistake.
  options.inputs = {};
  options.form = {.transpose = {1, 0}};
  refused(data.channels_first, "data.transpose: [1, 0] orders 2 dimensions");
  options.form = {.reshape = {5, 5}};
  refused(data.flat, "data.reshape: [5, 5] has another number of elements");
}

// Two float images of [2, 2] with float targets.
job::DataFiles Floats(const TestFiles& files, const std::vector<float>& images, const std::vector<float>& targets) {
  return Paths(files.Write("x.npy", NpyBytes(NpyHeader("<f4", "(2, 2, 2)"), Bytes(images))),
               files.Write("t.npy", NpyBytes(NpyHeader("<f4", "(2,)"), Bytes(targets))));
}

TEST_CASE("data: a value is named by its place in the file, in whatever order it is fed", "[data]") {
  const TestFiles files;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  FeedOptions options;
  options.form.transpose = {1, 0};
  StoredData stored;

  // The second sample is [[4, 5], [nan, 7]], fed as [[4, nan], [5, 7]].
  const auto source = OpenDataSource(Floats(files, {0, 1, 2, 3, 4, 5, nan, 7}, {0, 1}), options, &stored);

  REQUIRE(source.ok());
  CHECK(std::isnan(InputValues(**source, {1})[1]));
  const size_t header = NpyBytes(NpyHeader("<f4", "(2, 2, 2)"), "").size();
  CHECK(stored.arrays[0].element(5) == files.directory() + "/x.npy: byte " + std::to_string(header + 4 * 6) + ": ");
  CHECK(stored.arrays[0].element(3) == files.directory() + "/x.npy: byte " + std::to_string(header + 4 * 3) + ": ");
}

TEST_CASE("data: images that nobody scaled, or twice, are a warning", "[data]") {
  const TestFiles files;
  const auto warning = [&](const job::DataFiles& paths, double scale) {
    std::vector<std::string> warnings;
    FeedOptions options;
    options.warnings = &warnings;
    options.normalisation.scale = scale;
    MustOpen(paths, options);
    return warnings.empty() ? "" : warnings[0];
  };
  const std::string labels = files.Write("y", IdxBytes(8, {2}, std::string("\0\1", 2)));
  const job::DataFiles bytes =
      Paths(files.Write("b", IdxBytes(8, {2, 4}, std::string("\0\1\2\3\4\5\6\xff", 8))), labels);
  CHECK_THAT(warning(bytes, 1), Catch::Contains("from 0 to 255") && Catch::Contains("divide_by: 255"));
  CHECK(warning(bytes, 1.0 / 255).empty());
  CHECK(warning(Paths(files.Write("s", IdxBytes(8, {2, 2}, std::string("\0\1\2\3", 4))), labels), 1).empty());
  CHECK_THAT(warning(Floats(files, {0, 200, 3, 4, 5, 6, 7, 8}, {0, 1}), 1), Catch::Contains("from 0 to 200"));
  CHECK_THAT(warning(Floats(files, {0, 1, 0, 1, 0, 1, 0, 0.5f}, {0, 1}), 1.0 / 255),
             Catch::Contains("divides them by 255"));
  CHECK(warning(Floats(files, {-1, 2, 0, 1, 0, 1, 0, 0.5f}, {0, 1}), 1).empty());
}

}  // namespace
}  // namespace lockstep::worker
