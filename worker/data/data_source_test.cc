#include "worker/data/data_source.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "worker/data/array_file.h"
#include "worker/data/test_files.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kLimit = 1 << 20;

job::DataFiles Files(const std::string& inputs, const std::string& labels) {
  job::DataFiles files;
  files.set_inputs(inputs);
  files.set_labels(labels);
  return files;
}

std::vector<float> ReadInputs(const DataSource& source, const std::vector<int64_t>& indices) {
  std::vector<float> out(indices.size() * static_cast<size_t>(NumElements(source.fields()[0].shape)));
  REQUIRE(source.Read(0, indices, {reinterpret_cast<std::byte*>(out.data()), out.size() * 4}).ok());
  return out;
}

std::vector<int64_t> ReadClasses(const DataSource& source, const std::vector<int64_t>& indices) {
  std::vector<int64_t> out(indices.size());
  REQUIRE(source.Read(1, indices, {reinterpret_cast<std::byte*>(out.data()), out.size() * 8}).ok());
  return out;
}

absl::Status ReadError(const TestFiles& files, const std::string& bytes,
                       job::DataFiles::Format format = job::DataFiles::FORMAT_AUTO) {
  return ReadArrayFile(files.Write("bad", bytes), format, kLimit).status();
}

void CheckError(const absl::Status& status, absl::StatusCode code, const std::string& part) {
  CHECK(status.code() == code);
  CHECK_THAT(std::string(status.message()), Catch::Contains(part));
}

TEST_CASE("data: IDX images and labels are read by index, plain or gzipped", "[data]") {
  TestFiles files;
  const std::string images = IdxBytes(8, {3, 2, 2}, std::string("\0\1\2\3\4\5\6\7\x08\x09\x0a\xff", 12));
  const std::string labels = IdxBytes(8, {3}, std::string("\2\0\1", 3));
  FeedOptions options;
  options.label_classes = 3;

  const auto plain = OpenDataSource(Files(files.Write("x", images), files.Write("y", labels)), options);
  const auto packed = OpenDataSource(Files(files.Write("xz", Gzip(images)), files.Write("yz", Gzip(labels))), options);

  REQUIRE(plain.ok());
  REQUIRE(packed.ok());
  CHECK((*plain)->num_samples() == 3);
  CHECK((*plain)->fields()[0] == TensorSpec{"inputs", DType::kF32, {2, 2}});
  CHECK((*plain)->fields()[1] == TensorSpec{"labels", DType::kI64, {}});
  CHECK(ReadInputs(**packed, {2, 0}) == std::vector<float>{8, 9, 10, 255, 0, 1, 2, 3});
  CHECK(ReadClasses(**packed, {2, 0, 1}) == std::vector<int64_t>{1, 2, 0});
  CHECK((*plain)->content_hash() == (*packed)->content_hash());
  CHECK((*plain)->content_hash().size() == 64);
}

TEST_CASE("data: the content hash covers elements, types and shapes", "[data]") {
  TestFiles files;
  const std::string y = files.Write("y", IdxBytes(8, {2}, std::string("\0\1", 2)));
  const auto hash = [&](const std::string& x) {
    const auto source = OpenDataSource(Files(files.Write("x", x), y), FeedOptions{});
    REQUIRE(source.ok());
    return (*source)->content_hash();
  };
  const std::string base = hash(IdxBytes(8, {2, 4}, "abcdefgh"));
  CHECK(base == hash(IdxBytes(8, {2, 4}, "abcdefgh")));
  CHECK(base != hash(IdxBytes(8, {2, 4}, "abcdefgi")));
  CHECK(base != hash(IdxBytes(8, {2, 2, 2}, "abcdefgh")));
  CHECK(base != hash(IdxBytes(9, {2, 4}, "abcdefgh")));
}

TEST_CASE("data: normalisation rounds each operation once, per channel", "[data]") {
  TestFiles files;
  std::string pixels;
  for (int i = 0; i < 256; ++i) pixels += static_cast<char>(i);
  const job::DataFiles paths = Files(files.Write("x", IdxBytes(8, {2, 2, 64}, pixels)),
                                     files.Write("y", IdxBytes(8, {2}, std::string("\0\1", 2))));
  FeedOptions options;
  options.normalisation = {.scale = 1.0 / 255, .mean = {0.286, 0.5}, .std = {0.353}};

  const auto source = OpenDataSource(paths, options);

  REQUIRE(source.ok());
  const std::vector<float> values = ReadInputs(**source, {0, 1});
  for (int i = 0; i < 256; ++i) {
    const double mean = (i / 64) % 2 == 0 ? 0.286 : 0.5;
    const float factor = static_cast<float>(1.0 / 255 / 0.353);
    const float offset = static_cast<float>(-mean / 0.353);
    volatile float product = static_cast<float>(i) * factor;  // keeps the two roundings apart
    CHECK(values[static_cast<size_t>(i)] == product + offset);
    CHECK(values[static_cast<size_t>(i)] == Approx((i / 255.0 - mean) / 0.353).margin(1e-6));
  }
  options.normalisation.mean = {0, 0, 0};
  CheckError(OpenDataSource(paths, options).status(), absl::StatusCode::kInvalidArgument, "has 3 channels");
}

TEST_CASE("data: npy arrays of every supported type and byte order", "[data]") {
  TestFiles files;
  const auto values = [&](const std::string& bytes) {
    const auto source =
        OpenDataSource(Files(files.Write("x.npy", bytes),
                             files.Write("y.npy", NpyBytes(NpyHeader("<f4", "(2,)"), Bytes<float>({0.5f, -1})))),
                       FeedOptions{});
    INFO(source.status());
    REQUIRE(source.ok());
    std::vector<float> targets(2);
    REQUIRE((*source)->Read(1, {0, 1}, {reinterpret_cast<std::byte*>(targets.data()), 8}).ok());
    CHECK(targets == std::vector<float>{0.5f, -1});
    return ReadInputs(**source, {1, 0});
  };
  const std::vector<float> expected = {3, 4, 1, 2};
  CHECK(values(NpyBytes(NpyHeader("<f4", "(2, 2)"), Bytes<float>({1, 2, 3, 4}))) == expected);
  CHECK(values(NpyBytes(NpyHeader("<f8", "(2, 2)"), Bytes<double>({1, 2, 3, 4}))) == expected);
  CHECK(values(NpyBytes(NpyHeader("<f2", "(2, 2)"), Bytes<uint16_t>({0x3c00, 0x4000, 0x4200, 0x4400}))) == expected);
  CHECK(values(NpyBytes(NpyHeader("|u1", "(2, 2)"), Bytes<uint8_t>({1, 2, 3, 4}))) == expected);
  CHECK(values(NpyBytes(NpyHeader("<i8", "(2, 2)"), Bytes<int64_t>({1, 2, 3, 4}))) == expected);
  CHECK(values(NpyBytes(NpyHeader("<u2", "(2, 2)"), Bytes<uint16_t>({1, 2, 3, 4}))) == expected);
  CHECK(values(NpyBytes(NpyHeader(">i2", "(2, 2)"), std::string("\0\1\0\2\0\3\0\4", 8))) == expected);
  CHECK(values(Gzip(NpyBytes(NpyHeader(">i4", "(2, 2,)"), std::string("\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4", 16)))) ==
        expected);
}

TEST_CASE("data: a bad IDX file is an error that names file and byte", "[data]") {
  using absl::StatusCode;
  TestFiles files;
  CheckError(ReadError(files, ""), StatusCode::kDataLoss, "bad: byte 0: the file ends in its first four bytes");
  CheckError(ReadError(files, "GIF89a"), StatusCode::kInvalidArgument, "byte 0: neither an IDX nor an npy file");
  CheckError(ReadError(files, std::string("\0\0\x08\0", 4)), StatusCode::kInvalidArgument,
             "byte 3: an IDX array of 1 to 8");
  CheckError(ReadError(files, std::string("\0\0\x07\1", 4), job::DataFiles::FORMAT_IDX), StatusCode::kInvalidArgument,
             "byte 0: no IDX file");
  CheckError(ReadError(files, std::string("\0\0\x08\3\0\0\0\1\0", 9)), StatusCode::kDataLoss,
             "byte 9: the file ends in the IDX header");
  CheckError(ReadError(files, IdxBytes(8, {3, 2}, "12345")), StatusCode::kDataLoss,
             "byte 12: the header announces 6 bytes");
  CheckError(ReadError(files, IdxBytes(8, {3, 2}, "1234567")), StatusCode::kInvalidArgument,
             "byte 18: the elements that the header announces end here");
  CheckError(ReadError(files, IdxBytes(8, {0, 2}, "")), StatusCode::kInvalidArgument, "holds no sample");
  CheckError(ReadError(files, IdxBytes(8, {0xffffffff, 0xffffffff, 0xffffffff}, "")), StatusCode::kInvalidArgument,
             "too many");
  CheckError(ReadError(files, IdxBytes(14, {1 << 20, 1 << 10}, "")), StatusCode::kResourceExhausted,
             "raise data.memory");
  CheckError(ReadError(files, IdxBytes(8, {3}, "123"), job::DataFiles::FORMAT_NPY), StatusCode::kInvalidArgument,
             "no npy file");
  CheckError(ReadArrayFile(files.directory(), job::DataFiles::FORMAT_AUTO, kLimit).status(),
             StatusCode::kInvalidArgument, "is not a file");
  CheckError(ReadArrayFile("/nowhere/x", job::DataFiles::FORMAT_AUTO, kLimit).status(), StatusCode::kNotFound,
             "/nowhere/x");
}

TEST_CASE("data: a bad gzip file is an error that says so", "[data]") {
  using absl::StatusCode;
  TestFiles files;
  std::string noise(4000, '\0');
  std::mt19937 random(7);
  for (char& c : noise) c = static_cast<char>(random());
  const std::string packed = Gzip(IdxBytes(8, {4000}, noise));

  CheckError(ReadError(files, packed.substr(0, packed.size() / 2)), StatusCode::kDataLoss,
             "of the decompressed data: the compressed data ends too early");
  CheckError(ReadError(files, packed.substr(0, packed.size() - 4)), StatusCode::kDataLoss, "ends too early");
  std::string corrupt = packed;
  corrupt[corrupt.size() - 6] ^= 1;  // in the checksum
  CheckError(ReadError(files, corrupt), StatusCode::kDataLoss, "copy the file again");
  CheckError(ReadError(files, Gzip(IdxBytes(8, {4001}, noise))), StatusCode::kDataLoss, "1 of 4001 bytes are missing");
  CheckError(ReadError(files, Gzip(IdxBytes(8, {1 << 20}, "x"))), StatusCode::kDataLoss, "more than the file can hold");
}

TEST_CASE("data: a bad npy header is an error that names its place", "[data]") {
  using absl::StatusCode;
  TestFiles files;
  const auto header = [&](const std::string& text, const std::string& part) {
    INFO(text);
    CheckError(ReadError(files, NpyBytes(text, "")), StatusCode::kInvalidArgument, part);
  };
  header("", "byte 10: npy header: a dictionary was expected");
  header("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", "numpy.ascontiguousarray");
  header("{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", "element type '<f3' is not supported");
  header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "not a structured one");
  header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "is not supported");
  header("{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}", "is not supported");
  header("{'descr': '<f4', 'shape': (1,)}", "must all be there");
  header("{'descr': '<f4', 'descr': '<f4'}", "unknown or there twice");
  header("{'evil': 1}", "the key 'evil' is unknown");
  header("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "the array has no dimensions");
  header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "a dimension was expected");
  header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "a dimension was expected");
  header("{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}", "a comma or )");
  header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "more than 8 dimensions");
  header("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,4)}", "too many");
  header("{'descr': '<f4' 'fortran_order': False}", "a comma or }");
  header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "nothing more");
  CheckError(ReadError(files, "\x93NUMPX"), StatusCode::kDataLoss, "the file ends in the npy header");
  CheckError(ReadError(files, "\x93NUMXXXXXXXX"), StatusCode::kInvalidArgument, "byte 4: no npy file");
  CheckError(ReadError(files, "\x93NUMPY\x09\x01\x01\x01"), StatusCode::kInvalidArgument, "npy version 9");
  CheckError(ReadError(files, "\x93NUMPY\x02\x01\xff\xff\xff\xff"), StatusCode::kInvalidArgument,
             "an npy header of 4294967295 bytes");
}

TEST_CASE("data: files that do not belong together, or not to the job, are refused", "[data]") {
  using absl::StatusCode;
  TestFiles files;
  const std::string x = files.Write("x", IdxBytes(8, {3, 2}, "abcdef"));
  const std::string y = files.Write("y", IdxBytes(8, {3}, std::string("\0\1\x0a", 3)));
  FeedOptions options;
  options.label_classes = 10;

  CheckError(OpenDataSource(Files(x, y), options).status(), StatusCode::kInvalidArgument,
             "/y: byte 10: label 2 is 10, the model has the classes 0 to 9");
  CheckError(OpenDataSource(Files(x, files.Write("i", IdxBytes(9, {3}, "\1\1\xff"))), options).status(),
             StatusCode::kInvalidArgument, "label 2 is -1");
  CheckError(
      OpenDataSource(Files(x, files.Write("f", NpyBytes(NpyHeader("<f4", "(3,)"), Bytes<float>({1, 1, 1})))), options)
          .status(),
      StatusCode::kInvalidArgument, "save them as integers");
  CheckError(OpenDataSource(Files(x, files.Write("s", IdxBytes(8, {2}, "\1\1"))), options).status(),
             StatusCode::kInvalidArgument, "holds 3 inputs");
  options.label_classes = 11;
  options.inputs = {{"inputs", DType::kF32, {3}}};
  CheckError(OpenDataSource(Files(x, y), options).status(), StatusCode::kInvalidArgument, "the model takes [3]");
  options.inputs = {{"inputs", DType::kF32, {1, 2}}};
  const auto source = OpenDataSource(Files(x, y), options);
  REQUIRE(source.ok());
  CHECK((*source)->fields()[0].shape == Shape{1, 2});

  job::DataFiles pinned = Files(x, y);
  pinned.set_sha256((*source)->content_hash());
  CHECK(OpenDataSource(pinned, options).ok());
  pinned.set_sha256(std::string(64, '0'));
  CheckError(OpenDataSource(pinned, options).status(), StatusCode::kInvalidArgument, "are not the data of this job");
  options.memory_limit_bytes = 8;
  CheckError(OpenDataSource(Files(x, y), options).status(), StatusCode::kResourceExhausted,
             "needs 3 bytes and 2 are left");
}

TEST_CASE("data: numbers that pick rows which the model has not are refused with their place", "[data]") {
  using absl::StatusCode;
  TestFiles files;
  const std::string x = files.Write("x", NpyBytes(NpyHeader("<i8", "(2, 2)"), Bytes<int64_t>({3, 99, -5, 100})));
  const std::string y = files.Write("y", IdxBytes(8, {2}, "\1\1"));
  FeedOptions options;
  const DType dtype = GENERATE(DType::kI64, DType::kI32);
  const auto open = [&](int64_t lowest, int64_t highest) {
    options.inputs = {{"words", dtype, {2}, IndexRange{lowest, highest, "the rows of 'table'"}}};
    return OpenDataSource(Files(x, y), options).status();
  };

  CHECK(open(-101, 100).ok());
  CheckError(open(-100, 99), StatusCode::kInvalidArgument, "/x: byte 94: inputs 3 is 100, the model takes ");
  CheckError(open(0, 100), StatusCode::kInvalidArgument, "inputs 2 is -5");
  CheckError(open(0, 100), StatusCode::kInvalidArgument, " here, 0 to 100 (the rows of 'table')");
}

TEST_CASE("data: whoever watches sees every byte that is read and hashed", "[data]") {
  TestFiles files;
  Pulse pulse;
  FeedOptions options;
  options.pulse = &pulse;
  const std::string x = files.Write("x", IdxBytes(8, {3, 2}, "\1\2\3\4\5\6"));
  const std::string y = files.Write("y", IdxBytes(8, {3}, "\1\1\1"));

  REQUIRE(OpenDataSource(Files(x, y), options).ok());

  // Two headers of 12 and 8 bytes; nine elements, read and hashed.
  CHECK(pulse.progress() == 12 + 8 + 2 * 9);
}

TEST_CASE("data: no damage to a file can do more than make it an error", "[data]") {
  TestFiles files;
  const std::vector<std::string> seeds = {
      IdxBytes(8, {4, 3}, "abcdefghijkl"),
      Gzip(IdxBytes(12, {4, 3}, std::string(48, 'x'))),
      NpyBytes(NpyHeader("<f4", "(4, 3)"), std::string(48, 'x')),
      Gzip(NpyBytes(NpyHeader("<i8", "(2, 3)"), std::string(48, 'x'))),
  };
  std::mt19937 random(20);
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::string bytes = seeds[static_cast<size_t>(round) % seeds.size()];
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < changes; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const auto array = ReadArrayFile(files.Write("fuzzed", bytes), job::DataFiles::FORMAT_AUTO, kLimit);
    if (!array.ok()) {
      ++refused;
      CHECK_THAT(std::string(array.status().message()), Catch::Contains("fuzzed"));
    } else {
      CHECK(array->array.num_elements() > 0);
    }
  }
  CHECK(refused > 200);
}

}  // namespace
}  // namespace lockstep::worker
