#include "worker/inference/predictor.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "common/graph/build/build_metagraph.h"
#include "worker/device/choice/devices.h"
#include "worker/fakes/deferred_device.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kSamples = 11;
constexpr int64_t kFeatures = 3;
constexpr int64_t kClasses = 2;

// Sample i is {i, i + 0.5, -i}; there are no labels.
class Counting final : public DataSource {
 public:
  int64_t num_samples() const override { return kSamples; }
  bool has_labels() const override { return false; }
  const std::vector<TensorSpec>& fields() const override { return fields_; }
  absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    REQUIRE(field == 0);
    auto* value = reinterpret_cast<float*>(out.data());
    for (const int64_t index : indices) {
      const auto i = static_cast<float>(index);
      for (const float feature : {i, i + 0.5f, -i}) *value++ = feature;
    }
    return absl::OkStatus();
  }
  int64_t held_bytes() const override { return 0; }
  const std::string& content_hash() const override { return hash_; }

 private:
  const std::vector<TensorSpec> fields_ = {{"inputs", DType::kF32, {kFeatures}}};
  const std::string hash_ = "counting";
};

// `centred`: the mean of the batch is taken from each sample first.
MetaGraph Linear(bool centred = false) {
  MetaGraphRequest request;
  Graph graph;
  graph.inputs = {{"x", DType::kF32, {kBatchDim, kFeatures}}};
  graph.variables = {{"weight", DType::kF32, {kFeatures, kClasses}, VariableKind::kParameter, {}}};
  if (centred) {
    graph.nodes = {{"mean", OpType::kReduceMean, {"x"}, {"mean"}, ReduceAttributes{{0}, true, false}},
                   {"centre", OpType::kSub, {"x", "mean"}, {"centred"}, NoAttributes{}}};
  }
  graph.nodes.push_back({"layer", OpType::kMatMul, {centred ? "centred" : "x", "weight"}, {"scores"}, NoAttributes{}});
  graph.outputs = {"scores"};
  request.imported = graph;
  request.inputs = {{"x", "inputs", InputRole::kFeature, DType::kF32, {kBatchDim, kFeatures}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.update.schedule.lr = 0.1;
  request.pass_batch = 4;
  auto metagraph = BuildMetaGraph(request);
  REQUIRE(metagraph.status() == absl::OkStatus());
  return *std::move(metagraph);
}

absl::StatusOr<Tensor> Weight(const Variable& variable) {
  CHECK(variable.name == "weight");
  Tensor tensor = Tensor::Zeros(DType::kF32, {kFeatures, kClasses});
  const float values[] = {1, 10, 2, 20, 4, 40};
  std::memcpy(tensor.data(), values, sizeof values);
  return tensor;
}

// i * 1 + (i + 0.5) * 2 - i * 4, and ten times that.
std::vector<float> Expected() {
  std::vector<float> rows;
  for (int64_t i = 0; i < kSamples; ++i) {
    const float row = 1.0f - static_cast<float>(i);
    rows.insert(rows.end(), {row, 10 * row});
  }
  return rows;
}

std::vector<float> PredictAll(Predictor& predictor) {
  std::vector<float> rows;
  for (int64_t i = 0; i < predictor.batches(); ++i) {
    const auto more = predictor.Run(i);
    REQUIRE(more.status() == absl::OkStatus());
    const auto* const floats = reinterpret_cast<const float*>(more->data());
    rows.insert(rows.end(), floats, floats + more->size() / sizeof(float));
  }
  return rows;
}

}  // namespace

TEST_CASE("predictor: every sample's row, in their order, whatever the batch; none for the filling", "[inference]") {
  const MetaGraph metagraph = Linear();
  const Counting source;
  const int64_t batch = GENERATE(1, 4, 11, 16);
  const auto memory = GENERATE(device::DeferredMemory::kOfInner, device::DeferredMemory::kHidden);
  const auto device = device::MakeDeferredDevice(*device::MakeDevice(device::DeviceKind::kReference, {}), memory);

  const auto predictor = Predictor::Make(*device, metagraph, Weight, source, {.output = "scores", .batch = batch});
  REQUIRE(predictor.status() == absl::OkStatus());
  const std::vector<float> rows = PredictAll(**predictor);

  CHECK((*predictor)->row().shape == Shape{kClasses});
  CHECK((*predictor)->row_bytes() == 8);
  CHECK(rows == Expected());
  // Not by what was computed before.
  const auto again = (*predictor)->Run(0);
  REQUIRE(again.status() == absl::OkStatus());
  CHECK(std::memcmp(again->data(), rows.data(), again->size()) == 0);
}

TEST_CASE("predictor: where samples see each other, the last ones see no others", "[inference]") {
  const MetaGraph metagraph = Linear(/*centred=*/true);
  const Counting source;
  const int64_t batch = GENERATE(4, 11, 16);
  const auto device = *device::MakeDevice(device::DeviceKind::kReference, {});

  const auto predictor = Predictor::Make(*device, metagraph, Weight, source, {.output = "scores", .batch = batch});
  REQUIRE(predictor.status() == absl::OkStatus());

  // Sample i is -1 times its distance from the mean of its batch, and ten times that.
  std::vector<float> expected;
  for (int64_t i = 0; i < kSamples; ++i) {
    const int64_t first = i / batch * batch, last = std::min(first + batch, kSamples) - 1;
    const float row = -(static_cast<float>(i) - static_cast<float>(first + last) / 2);
    expected.insert(expected.end(), {row, 10 * row});
  }
  const std::vector<float> rows = PredictAll(**predictor);
  REQUIRE(rows.size() == expected.size());
  for (size_t i = 0; i < rows.size(); ++i) CHECK(rows[i] == Approx(expected[i]).margin(1e-4));
}

}  // namespace lockstep::worker
