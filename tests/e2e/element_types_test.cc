// Inputs of every element type, from a file to a checkpoint, on real processes. The samples are zeros and ones, which
// all types hold, and the model casts them to float32 first: whatever the types, the same weights must come of them.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/e2e/commands.h"
#include "tests/e2e/small_onnx.h"
#include "worker/data/test_files.h"

namespace lockstep::e2e {
namespace {

constexpr int kSamples = 32;
constexpr int kWidth = 12;

struct Stored {
  std::string descr;  // the type's name in an npy file
  std::string elements;
};

template <typename T>
Stored Of(const std::string& descr, T one = 1) {
  std::vector<T> values(kSamples * kWidth);
  for (size_t i = 0; i < values.size(); ++i) values[i] = i * 7 % 11 < 5 ? one : T{0};
  return {descr, worker::Bytes(values)};
}

Stored Float32() { return Of<float>("<f4"); }

std::string WriteNpy(const std::string& name, const std::string& shape, const Stored& stored) {
  const std::string path = TempPath(name + ".npy");
  Write(path, worker::NpyBytes(worker::NpyHeader(stored.descr, shape), stored.elements));
  return path;
}

// Ten steps of a model whose input has ONNX's element type `input`; then what the job comes home with: the digest of
// its last checkpoint, its loss on the data, its predictions.
struct Home {
  std::string digest;
  std::string loss;
  std::string predictions;
  friend bool operator==(const Home&, const Home&) = default;
};

Home Train(const std::string& name, int input, const Stored& stored, const std::string& workers = "1") {
  INFO(name);
  const std::string model = TempPath(name + ".onnx"), directory = TempPath(name), predicted = TempPath(name + ".y.npy");
  WriteLinearOf(model, input);
  const std::string x = WriteNpy(name + ".x", absl::StrCat("(", kSamples, ", ", kWidth, ")"), stored);
  std::vector<int64_t> labels(kSamples);
  for (int i = 0; i < kSamples; ++i) labels[static_cast<size_t>(i)] = i % 4;
  const std::string y = WriteNpy(name + ".labels", absl::StrCat("(", kSamples, ",)"),
                                 {.descr = "<i8", .elements = worker::Bytes(labels)});

  const Result run = Run({"run", kJob, "--workers", workers, "--dir", directory},
                         {"model.builtin=null", "model.onnx=" + model, "data.normalize=null", "data.train.inputs=" + x,
                          "data.train.labels=" + y, "train.duration=10steps", "train.global_batch_size=8",
                          "train.logical_shards=2", "train.optimizer.lr=0.1"});
  INFO(run.output);
  REQUIRE(run.code == kExitDone);
  const Result eval = Run({"eval", directory, "--inputs", x, "--labels", y, "--json"});
  INFO(eval.output);
  CHECK(eval.code == kExitDone);
  const Result predict = Run({"predict", directory, "--inputs", x, "-o", predicted});
  INFO(predict.output);
  CHECK(predict.code == kExitDone);
  return {Digest(directory), eval.output.substr(eval.output.rfind('\n', eval.output.size() - 2) + 1), Read(predicted)};
}

}  // namespace

TEST_CASE("element types: a model trains on inputs of every type as on those of float32", "[e2e]") {
  const Home expected = Train("float32", 1, Float32());
  CHECK(Train("bool", 9, Of<uint8_t>("|b1")) == expected);
  CHECK(Train("uint8", 2, Of<uint8_t>("|u1")) == expected);
  CHECK(Train("int8", 3, Of<int8_t>("|i1")) == expected);
  CHECK(Train("uint16", 4, Of<uint16_t>("<u2")) == expected);
  CHECK(Train("int16", 5, Of<int16_t>("<i2")) == expected);
  CHECK(Train("int32", 6, Of<int32_t>("<i4")) == expected);
  CHECK(Train("int64", 7, Of<int64_t>("<i8"), "2") == expected);
  CHECK(Train("float16", 10, Of<uint16_t>("<f2", 0x3c00)) == expected);
  CHECK(Train("uint32", 12, Of<uint32_t>("<u4")) == expected);
}

TEST_CASE("element types: a file's type need not be its input's", "[e2e]") {
  const Home expected = Train("as_float32", 1, Float32());
  CHECK(Train("bool_to_float32", 1, Of<uint8_t>("|b1")) == expected);
  CHECK(Train("int8_to_float32", 1, Of<int8_t>("|i1")) == expected);
  CHECK(Train("uint16_to_int64", 7, Of<uint16_t>("<u2")) == expected);
  CHECK(Train("uint64_to_uint8", 2, Of<uint64_t>("<u8")) == expected);
  CHECK(Train("float64_to_float32", 1, Of<double>("<f8")) == expected);
  CHECK(Train("int32_to_bool", 9, Of<int32_t>("<i4")) == expected);
  CHECK(Train("int64_to_bfloat16", 16, Of<int64_t>("<i8")) == expected);
}

}  // namespace lockstep::e2e
