#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "worker/data/test_containers.h"
#include "worker/data/test_files.h"
#include "worker/data/test_reading.h"

namespace lockstep::worker {
namespace {

using absl::StatusCode;

const std::string kIds = NpyBytes(NpyHeader("<i8", "(2, 3)"), Bytes<int64_t>({1, 2, 3, 4, 5, 6}));
const std::string kMask = NpyBytes(NpyHeader("|b1", "(2, 3)"), std::string("\1\1\0\1\0\0", 6));
const std::string kLabels = NpyBytes(NpyHeader("<i4", "(2,)"), Bytes<int32_t>({1, 0}));

job::DataFiles Archive(const std::string& path, const std::vector<std::string>& inputs = {},
                       const std::string& label = "") {
  job::DataFiles files;
  files.set_inputs(path);
  for (const std::string& name : inputs) files.add_input_fields(name);
  if (!label.empty()) files.set_label_field(label);
  return files;
}

FeedOptions Classes(int64_t classes) {
  FeedOptions options;
  options.label_classes = classes;
  return options;
}

TEST_CASE("npz: an array beside the labels is the input, stored, deflated or as numpy writes it", "[data]") {
  const TestFiles files;
  std::string hash;
  for (const bool deflated : {false, true}) {
    for (const bool zip64_local : {false, true}) {
      const std::string bytes = ZipBytes(
          {{"x.npy", kIds, deflated, zip64_local}, {"labels.npy", kLabels, deflated, zip64_local}}, "a comment");
      const auto source = MustOpen(Archive(files.Write("a.npz", bytes)), Classes(2));
      CHECK(source->num_samples() == 2);
      CHECK(source->fields()[0] == TensorSpec{"inputs", DType::kF32, {3}});
      CHECK(AllOf<float>(*source, "inputs") == std::vector<float>{1, 2, 3, 4, 5, 6});
      CHECK(AllOf<int64_t>(*source, "labels") == std::vector<int64_t>{1, 0});
      if (hash.empty()) hash = source->content_hash();
      CHECK(source->content_hash() == hash);
    }
  }
}

TEST_CASE("npz: several arrays feed the inputs of the model by name, integers unchanged", "[data]") {
  const TestFiles files;
  const std::string path = files.Write("a.npz", ZipBytes({{"attention_mask.npy", kMask},
                                                          {"unused.npy", "not even an array"},
                                                          {"input_ids.npy", kIds},
                                                          {"y.npy", kLabels}}));
  const job::DataFiles archive = Archive(path, {"input_ids", "attention_mask"}, "y");
  FeedOptions options = Classes(2);
  options.inputs = {{"input_ids", DType::kI64, {3}}, {"attention_mask", DType::kBool, {3}}};

  const auto source = MustOpen(archive, options);

  CHECK(source->fields() == std::vector<TensorSpec>{{"input_ids", DType::kI64, {3}},
                                                    {"attention_mask", DType::kBool, {3}},
                                                    {"labels", DType::kI64, {}}});
  CHECK(AllOf<int64_t>(*source, "input_ids") == std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  CHECK(AllOf<uint8_t>(*source, "attention_mask") == std::vector<uint8_t>{1, 1, 0, 1, 0, 0});
  options.inputs[0].dtype = DType::kI32;
  options.inputs[1].dtype = DType::kF32;
  CHECK(AllOf<int32_t>(*MustOpen(archive, options), "input_ids") == std::vector<int32_t>{1, 2, 3, 4, 5, 6});
  CHECK(AllOf<float>(*MustOpen(archive, options), "attention_mask") == std::vector<float>{1, 1, 0, 1, 0, 0});

  options.inputs[1].name = "token_type_ids";
  CheckRefused(archive, options, StatusCode::kInvalidArgument,
               "the model has an input 'token_type_ids', the data gives input_ids, attention_mask");
  options.inputs.pop_back();
  CheckRefused(archive, options, StatusCode::kInvalidArgument, "attention_mask is no input of the model");
}

TEST_CASE("npz: inputs of small integers take what fits", "[data]") {
  const TestFiles files;
  const auto archive = [&](const std::vector<int64_t>& values) {
    const std::string array = NpyBytes(NpyHeader("<i8", "(2,)"), Bytes<int64_t>(values));
    return Archive(files.Write("a.npz", ZipBytes({{"x.npy", array}, {"labels.npy", kLabels}})));
  };
  FeedOptions options = Classes(2);
  options.inputs = {{"x", DType::kI16, {}}};
  CHECK(AllOf<int16_t>(*MustOpen(archive({-32768, 32767}), options), "inputs") == std::vector<int16_t>{-32768, 32767});
  CheckRefused(archive({1, 32768}), options, StatusCode::kInvalidArgument, "x 1 is 32768, the model takes int16");
  options.inputs[0].dtype = DType::kU16;
  CHECK(AllOf<uint16_t>(*MustOpen(archive({0, 65535}), options), "inputs") == std::vector<uint16_t>{0, 65535});
  CheckRefused(archive({1, -1}), options, StatusCode::kInvalidArgument, "x 1 is -1, the model takes uint16");
  options.inputs[0].dtype = DType::kU32;
  CHECK(AllOf<uint32_t>(*MustOpen(archive({0, 4294967295}), options), "inputs") ==
        std::vector<uint32_t>{0, 4294967295});
  options.inputs[0].dtype = DType::kU8;
  CHECK(AllOf<uint8_t>(*MustOpen(archive({0, 255}), options), "inputs") == std::vector<uint8_t>{0, 255});
  CheckRefused(archive({1, 256}), options, StatusCode::kInvalidArgument, "x 1 is 256, the model takes uint8");
  options.inputs[0].dtype = DType::kI8;
  CHECK(AllOf<int8_t>(*MustOpen(archive({-128, 127}), options), "inputs") == std::vector<int8_t>{-128, 127});
}

TEST_CASE("npz: what an integer input cannot take is refused with its place", "[data]") {
  const TestFiles files;
  const auto archive = [&](const std::string& array) {
    return Archive(files.Write("a.npz", ZipBytes({{"x.npy", array}, {"labels.npy", kLabels}})));
  };
  FeedOptions options = Classes(2);
  options.inputs = {{"x", DType::kI64, {}}};
  CheckRefused(archive(NpyBytes(NpyHeader("<f4", "(2,)"), Bytes<float>({1, 2}))), options, StatusCode::kInvalidArgument,
               "x of F32, the model takes int64 here; save them as integers");
  CheckRefused(archive(NpyBytes(NpyHeader("<u8", "(2,)"), Bytes<uint64_t>({1, uint64_t{1} << 63}))), options,
               StatusCode::kInvalidArgument, "x 1 is 9223372036854775808");
  const std::string wide = NpyBytes(NpyHeader("<i8", "(2,)"), Bytes<int64_t>({1, int64_t{1} << 31}));
  CHECK(AllOf<int64_t>(*MustOpen(archive(wide), options), "inputs")[1] == int64_t{1} << 31);
  options.inputs[0].dtype = DType::kI32;
  CheckRefused(archive(wide), options, StatusCode::kInvalidArgument, "x 1 is 2147483648, the model takes int32");
  options.inputs[0].dtype = DType::kBool;
  CheckRefused(archive(NpyBytes(NpyHeader("|u1", "(2,)"), "\1\2")), options, StatusCode::kInvalidArgument,
               "x 1 is 2, the model takes a bool");
  options.inputs[0].dtype = DType::kF16;
  CheckRefused(archive(wide), options, StatusCode::kInvalidArgument, "feeds an input of F16");
  options.inputs[0].dtype = DType::kI64;
  options.normalisation.scale = 0.5;
  CheckRefused(archive(wide), options, StatusCode::kInvalidArgument, "data.normalize is for float inputs");
}

TEST_CASE("npz: the choice of fields is held against what the archive has", "[data]") {
  const TestFiles files;
  const std::string path = files.Write("a.npz", ZipBytes({{"x.npy", kIds}, {"y.npy", kLabels}}));
  const std::string has = "the file has the arrays 'x', 'y'";
  CheckRefused(Archive(path), {}, StatusCode::kInvalidArgument, "Name it with label_field: " + has);
  CheckRefused(Archive(path, {}, "z"), {}, StatusCode::kInvalidArgument, "there is no array 'z': " + has);
  CheckRefused(Archive(path, {"x", "x"}, "y"), {}, StatusCode::kInvalidArgument, "names array 'x' twice");
  CheckRefused(Archive(path, {"y"}, "y"), {}, StatusCode::kInvalidArgument, "'y' which is the label");
  CheckRefused(Archive(files.Write("b", ZipBytes({{"labels.npy", kLabels}}))), {}, StatusCode::kInvalidArgument,
               "has no array beside the label");
  CheckRefused(Archive(files.Write("c", ZipBytes({{"readme.txt", "hello"}}))), {}, StatusCode::kInvalidArgument,
               "the archive has no array");
  const std::string three = NpyBytes(NpyHeader("<i4", "(3,)"), Bytes<int32_t>({1, 0, 1}));
  CheckRefused(Archive(files.Write("d", ZipBytes({{"x.npy", kIds}, {"labels.npy", three}}))), {},
               StatusCode::kInvalidArgument, "all must have one per sample");
  CheckRefused(Archive(files.Write("e", ZipBytes({{"x.npy", kIds}, {"x.npy", kIds}}))), {},
               StatusCode::kInvalidArgument, "two members have one name");
}

// Writes `bytes` over those at `at`.
std::string Patched(std::string bytes, size_t at, const std::string& with) {
  return bytes.replace(at, with.size(), with);
}

TEST_CASE("npz: an archive that lies, or is of a kind that is not read, is refused with its byte", "[data]") {
  const TestFiles files;
  const std::string good = ZipBytes({{"x.npy", kIds, true}, {"labels.npy", kLabels}});
  const size_t directory = good.find("PK\x01\x02");
  const size_t end = good.find("PK\x05\x06");
  const auto refused = [&](const std::string& bytes, StatusCode code, const std::string& part) {
    CheckRefused(Archive(files.Write("a.npz", bytes)), {}, code, part);
  };
  refused(Patched(good, directory + 8, "\1"), StatusCode::kInvalidArgument, "an encrypted member is not supported");
  refused(Patched(good, directory + 10, "\x0c"), StatusCode::kInvalidArgument, "compression method 12");
  refused(Patched(good, directory + 20, "\xff\xff\xff\xff"), StatusCode::kInvalidArgument, "zip64");
  refused(Patched(good, directory + 42, "\xff\xff\xff\x7f"), StatusCode::kDataLoss, "reaches into the directory");
  refused(Patched(good, directory + 42, "\1"), StatusCode::kDataLoss, "byte 1: the header of a member is not that");
  refused(Patched(good, directory + 46, "z"), StatusCode::kDataLoss, "the name of a member is not that");
  refused(Patched(good, directory + 16, "\x55"), StatusCode::kDataLoss, "its checksum is another");
  refused(Patched(good, directory + 24, "\x55"), StatusCode::kDataLoss, "the packed data is corrupt");
  refused(Patched(good, end + 10, "\xff\xff"), StatusCode::kInvalidArgument, "zip64");
  refused(Patched(good, end + 16, "\xff\xff\xff\xff"), StatusCode::kInvalidArgument, "zip64");
  refused(Patched(good, end + 12, "\1"), StatusCode::kDataLoss, "which does not end here");
  refused(Patched(good, end + 4, "\1"), StatusCode::kInvalidArgument, "in several parts");
  refused(Patched(Patched(good, end + 8, "\3"), end + 10, "\3"), StatusCode::kDataLoss, "entry 2 of 3");
  refused(Patched(Patched(good, end + 8, "\1"), end + 10, "\1"), StatusCode::kDataLoss, "after its last entry");
}

TEST_CASE("npz: an array that announces more than its member holds allocates nothing", "[data]") {
  const TestFiles files;
  const std::string huge = NpyBytes(NpyHeader("<i8", "(1000000000, 3)"), "x");
  FeedOptions options;
  options.memory_limit_bytes = int64_t{1} << 40;
  for (const bool deflated : {false, true}) {
    const auto path = files.Write("a.npz", ZipBytes({{"x.npy", huge, deflated}, {"labels.npy", kLabels}}));
    CheckRefused(Archive(path), options, StatusCode::kDataLoss, "more than the file can hold");
  }
}

TEST_CASE("npz: no truncation and no flipped bit can do more than make an error", "[data]") {
  const TestFiles files;
  const std::string good = ZipBytes({{"x.npy", kIds, true}, {"labels.npy", kLabels}});
  job::DataFiles archive = Archive(files.Write("a.npz", good));
  archive.set_format(job::DataFiles::FORMAT_NPZ);
  const std::string hash = MustOpen(archive, {})->content_hash();
  for (size_t size = 0; size < good.size(); ++size) {
    INFO("cut to " << size << " bytes");
    files.Write("a.npz", good.substr(0, size));
    CHECK_FALSE(OpenDataSource(archive, {}).ok());
  }
  for (size_t i = 0; i < good.size(); ++i) {
    INFO("byte " << i);
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    files.Write("a.npz", bad);
    const auto source = OpenDataSource(archive, {});
    // What is not checked by a sum is not content: times, versions.
    if (source.ok()) CHECK((*source)->content_hash() == hash);
  }
}

}  // namespace
}  // namespace lockstep::worker
