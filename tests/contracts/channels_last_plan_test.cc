// Plans of an image network on the CUDA device in host execution, with cuDNN for a described GPU: between the first
// convolution and the last gradient nothing goes back to rows, and what is computed is what row-major values give.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/graph/differentiate.h"
#include "common/graph/ops/batch_norm.h"
#include "common/graph/ops/conv.h"
#include "common/graph/ops/pool.h"
#include "common/graph/ops/schema.h"
#include "tests/contracts/device_comparison.h"
#include "worker/device/cuda/make_device.h"
#include "worker/plan/plan.h"

namespace lockstep {
namespace {

using worker::Plan;

// A graph that grows by nodes whose first output has their name.
class Network {
 public:
  explicit Network(DType computed) : computed_(computed) {}

  std::string Input(const std::string& name, const Shape& shape) {
    graph.inputs.push_back({name, DType::kF32, shape});
    graph.values[name] = {DType::kF32, shape};
    return name;
  }
  std::string Add(const std::string& name, OpType op, std::vector<std::string> inputs, OpAttributes attributes = {},
                  std::vector<std::string> more_outputs = {}) {
    more_outputs.insert(more_outputs.begin(), name);
    MustOk(AppendNode(&graph, {"node " + name, op, std::move(inputs), more_outputs, std::move(attributes)}));
    return name;
  }
  // In the type of computing.
  std::string Cast(const std::string& value) {
    return Add("narrow " + value, OpType::kCast, {value}, CastAttributes{computed_});
  }
  std::string Convolution(const std::string& name, const std::string& x, const Shape& w, int64_t stride, bool bias) {
    const int64_t pad = w[2] / 2;
    std::vector<std::string> inputs = {x, Cast(Input(name + ".w", w))};
    if (bias) inputs.push_back(Cast(Input(name + ".b", {w[0]})));
    return Add(name, OpType::kConv, std::move(inputs),
               ConvAttributes{.kernel_shape = {w[2], w[3]}, .strides = {stride, stride}, .pads = {pad, pad, pad, pad}});
  }
  std::string Norm(const std::string& name, const std::string& x, int64_t channels) {
    return Add(name, OpType::kBatchNormTraining,
               {x, Input(name + ".scale", {channels}), Input(name + ".bias", {channels})}, BatchNormAttributes{},
               {name + ".mean", name + ".inv_std", name + ".variance"});
  }

  Graph graph;

 private:
  DType computed_;
};

// A stem with a pooling window, a residual block and a layer with a bias; the loss, and the gradients of every input.
Graph ResidualNetwork(DType computed) {
  Network net(computed);
  const PoolAttributes window{.kernel_shape = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}};
  std::string x = net.Cast(net.Input("images", {3, 3, 11, 9}));
  x = net.Convolution("stem", x, {8, 3, 3, 3}, 1, false);
  x = net.Add("stem.relu", OpType::kRelu, {net.Norm("stem.norm", x, 8)});
  const std::string pooled = net.Add("pool", OpType::kMaxPoolWithArgmax, {x}, window, {"places"});
  x = net.Convolution("first", pooled, {16, 8, 1, 1}, 1, false);
  x = net.Add("first.relu", OpType::kRelu, {net.Norm("first.norm", x, 16)});
  x = net.Norm("second.norm", net.Convolution("second", x, {8, 16, 3, 3}, 1, false), 8);
  x = net.Add("block", OpType::kRelu, {net.Add("sum", OpType::kAdd, {x, pooled})});
  x = net.Convolution("last", x, {4, 8, 3, 3}, 2, true);
  x = net.Add("averages", OpType::kAveragePool, {x}, PoolAttributes{.kernel_shape = {2, 2}});
  const Shape shape = net.graph.values.at(x).shape;
  x = net.Add("wide", OpType::kCast, {x}, CastAttributes{DType::kF32});
  x = net.Add("weighted", OpType::kMul, {x, net.Input("weights", shape)});
  x = net.Add("loss", OpType::kReduceSum, {x}, ReduceAttributes{.axes = {0, 1, 2, 3}, .keep_dims = false});
  std::vector<std::string> targets;
  for (const GraphInput& input : net.graph.inputs) targets.push_back(input.name);
  net.graph.outputs = Must(Differentiate(&net.graph, "loss", targets));
  net.graph.outputs.push_back("loss");
  return net.graph;
}

using Floats = std::vector<std::vector<float>>;

Floats Run(Plan& plan) {
  const std::vector<Tensor> tensors = RandomInputs(plan.inputs(), 1, false);
  std::vector<worker::InputBytes> bytes;
  for (const Tensor& tensor : tensors) bytes.push_back(tensor.bytes());
  MustOk(plan.RefreshVariables());
  MustOk(plan.RunPass(bytes, {}));
  Floats values;
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    values.emplace_back(static_cast<size_t>(NumElements(plan.outputs()[i].shape)));
    MustOk(plan.ReadOutput(static_cast<int>(i),
                           {reinterpret_cast<std::byte*>(values.back().data()), values.back().size() * sizeof(float)}));
  }
  return values;
}

// The lines of a plan that change layouts.
std::vector<std::string> Changes(const Plan& plan, const std::string& to) {
  std::vector<std::string> changes;
  for (const worker::PlannedStep& step : plan.Describe()) {
    if (absl::StartsWith(step.text, "layout of ") && absl::EndsWith(step.text, "to " + to))
      changes.push_back(step.text);
  }
  return changes;
}

TEST_CASE("channels last: a network computes what it computes of row-major values", "[channels]") {
  const auto device = Must(device::MakeCudaDevice({}));
  const Graph graph = ResidualNetwork(DType::kBF16);
  const auto free = Must(Plan::Make(device.get(), graph, {}, {}));
  const auto fixed = Must(Plan::Make(device.get(), graph, {}, {.free_layouts = false}));
  REQUIRE(Changes(*fixed, "channels-last").empty());

  const Floats got = Run(*free), expected = Run(*fixed);

  for (size_t i = 0; i < expected.size(); ++i) {
    INFO(graph.outputs[i]);
    float largest = 0;
    for (const float value : expected[i]) largest = std::max(largest, std::fabs(value));
    CHECK(largest > 0);
    for (size_t j = 0; j < expected[i].size(); ++j) {
      CAPTURE(j, expected[i][j], got[i][j]);
      // Sums over channels differ in their last bits, and a rounding to BF16 may then go the other way.
      REQUIRE(std::fabs(expected[i][j] - got[i][j]) <= 0x1p-6f * largest);
    }
  }
}

TEST_CASE("channels last: only what enters, weights and what leaves is moved", "[channels]") {
  const auto device = Must(device::MakeCudaDevice({}));
  const auto plan = Must(Plan::Draft(device.get(), ResidualNetwork(DType::kBF16), {}));

  std::vector<std::string> changes = Changes(*plan, "channels-last");
  for (const std::string& line : Changes(*plan, "row-major")) changes.push_back(line);
  CHECK(changes.size() >= 8);
  for (const std::string& line : changes) {
    INFO(line);
    // Images and weights, their gradients, and what stands between the network and its loss.
    CHECK((absl::StrContains(line, "images") || absl::StrContains(line, ".w") || absl::StrContains(line, "weight") ||
           absl::StrContains(line, "loss") || absl::StrContains(line, "averages")));
  }
  for (const auto& [node, implementation] : plan->choices()) {
    INFO(node);
    if (absl::StrContains(node, "Conv")) CHECK(absl::StrContains(implementation, "cudnn:bf16-nhwc:"));
  }
}

TEST_CASE("channels last: a plan's own choices make the same plan again", "[channels]") {
  const auto device = Must(device::MakeCudaDevice({}));
  const Graph graph = ResidualNetwork(DType::kBF16);
  const auto first = Must(Plan::Make(device.get(), graph, {}, {}));
  const worker::KernelChoices choices = first->choices();

  const auto again = Must(Plan::Make(device.get(), graph, {}, {.choices = &choices}));

  CHECK(again->Describe() == first->Describe());
  CHECK(Run(*again) == Run(*first));
}

TEST_CASE("channels last: float32 stays row-major", "[channels]") {
  const auto device = Must(device::MakeCudaDevice({}));
  const auto plan = Must(Plan::Draft(device.get(), ResidualNetwork(DType::kF32), {}));
  CHECK(Changes(*plan, "channels-last").empty());
}

}  // namespace
}  // namespace lockstep
