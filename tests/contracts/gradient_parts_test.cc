// The gradient of a convolution's weights with so many channels that the CPU computes it in parts, where it does so by
// Winograd's method: on other machines the same promises hold of what they do instead.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/random/random.h"
#include "worker/device/choice/devices.h"
#include "worker/plan/plan.h"

namespace lockstep {
namespace {

using device::DeviceKind;
using worker::KernelChoices;
using worker::Plan;
using worker::PlanOptions;

constexpr int64_t kChannels = 512;

template <typename T>
T Must(absl::StatusOr<T> value) {
  INFO(value.status().ToString());
  REQUIRE(value.ok());
  return *std::move(value);
}

Graph GradWeight() {
  ConvAttributes attributes;
  attributes.kernel_shape = {3, 3};
  attributes.strides = {1, 1};
  attributes.dilations = {1, 1};
  attributes.pads = {1, 1, 1, 1};
  Graph graph;
  graph.inputs = {{"dy", DType::kF32, {2, kChannels, 4, 4}}, {"x", DType::kF32, {2, kChannels, 4, 4}}};
  graph.nodes = {{"gradient", OpType::kConvGradWeight, {"dy", "x"}, {"dw", "db"}, attributes}};
  graph.outputs = {"dw", "db"};
  const absl::Status inferred = InferShapes(&graph);
  INFO(inferred.ToString());
  REQUIRE(inferred.ok());
  return graph;
}

struct Result {
  std::vector<float> weights;
  std::vector<float> bias;
  KernelChoices choices;
  int64_t arena = 0;
};

Result Compute(DeviceKind kind, int threads, const KernelChoices* choices) {
  const auto device = Must(device::MakeDevice(kind, {.threads = threads}));
  const Graph graph = GradWeight();
  const auto plan = Must(Plan::Make(device.get(), graph, {}, {.choices = choices}));
  std::vector<Tensor> inputs;
  std::vector<worker::InputBytes> bytes;
  for (const TensorSpec& spec : plan->inputs()) {
    Tensor tensor = Tensor::Zeros(spec.dtype, spec.shape);
    const RandomStream random = RandomStream::For(5, StreamOfName(spec.name));
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      tensor.elements<float>()[static_cast<size_t>(i)] = SymmetricUnit(random.At(static_cast<uint64_t>(i)));
    }
    inputs.push_back(std::move(tensor));
  }
  for (const Tensor& tensor : inputs) bytes.push_back(tensor.bytes());
  REQUIRE(plan->RefreshVariables().ok());
  REQUIRE(plan->RunPass(bytes, {}).ok());
  Result result{.choices = plan->choices(), .arena = plan->memory().arena};
  result.weights.resize(kChannels * kChannels * 9);
  result.bias.resize(kChannels);
  const auto read = [&](int output, std::vector<float>& to) {
    const absl::Span<std::byte> bytes(reinterpret_cast<std::byte*>(to.data()), to.size() * sizeof(float));
    REQUIRE(plan->ReadOutput(output, bytes).ok());
  };
  read(0, result.weights);
  read(1, result.bias);
  return result;
}

double Largest(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(double{value}));
  return largest;
}

double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference = std::max(difference, std::fabs(double{a[i]} - b[i]));
  return difference;
}

TEST_CASE("device: gradients of many channels' weights are the reference's, from bounded scratch", "[device]") {
  const int threads = GENERATE(1, 2);
  const Result reference = Compute(DeviceKind::kReference, 1, nullptr);

  const Result cpu = Compute(DeviceKind::kCpu, threads, nullptr);

  CHECK(Difference(cpu.weights, reference.weights) < 1e-4 * Largest(reference.weights));
  CHECK(Difference(cpu.bias, reference.bias) < 1e-4 * Largest(reference.bias));
  const int64_t results = kChannels * kChannels * 9 * 4;
  CHECK(cpu.arena < (int64_t{48} << 20) + 2 * results);
  CHECK(Compute(DeviceKind::kCpu, threads, &cpu.choices).weights == cpu.weights);
}

TEST_CASE("device: a kernel plan from before there were parts is replayed, one that names nonsense refused",
          "[device]") {
  const Result cpu = Compute(DeviceKind::kCpu, 1, nullptr);
  REQUIRE(cpu.choices.size() == 1);
  const auto& [node, chosen] = *cpu.choices.begin();
  const std::string whole = chosen.substr(0, chosen.find('/'));

  const KernelChoices before = {{node, whole}};
  CHECK(Difference(Compute(DeviceKind::kCpu, 1, &before).weights, cpu.weights) < 1e-4 * Largest(cpu.weights));

  const auto device = Must(device::MakeDevice(DeviceKind::kCpu, {}));
  for (const char* parts : {"/", "/0", "/1", "/3", "/1024", "/-2", "/2x", "/99999999999999"}) {
    INFO(parts);
    const KernelChoices nonsense = {{node, absl::StrCat(whole, parts)}};
    CHECK_FALSE(Plan::Draft(device.get(), GradWeight(), {.choices = &nonsense}).ok());
  }
}

}  // namespace
}  // namespace lockstep
