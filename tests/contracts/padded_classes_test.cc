// Passes of models with an odd number of classes on the CUDA device in host execution, whose plan fills them up: loss
// and gradients are those of the graph as it is, by the reference.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "worker/device/choice/devices.h"
#include "worker/device/cuda/make_device.h"
#include "worker/plan/pad_classes.h"
#include "worker/plan/plan_test_models.h"

namespace lockstep {
namespace {

using worker::Must;
using worker::MustOk;
using worker::Plan;

constexpr int64_t kOddClasses = worker::kLeastPaddedClasses + 7;

MetaGraph Model(const std::string& architecture) {
  MetaGraphRequest request = worker::ImageRequest("mlp", 4);
  request.precision = Precision::kBf16;
  request.model.hidden_sizes = {16};
  request.model.outputs = kOddClasses;
  if (architecture == "gpt2") {
    request.model = {
        .architecture = "gpt2", .layers = 1, .heads = 2, .width = 16, .context = 8, .vocabulary = kOddClasses};
    request.inputs = {{"tokens", "tokens", InputRole::kFeature, DType::kI64, {kBatchDim, 8}, {}},
                      {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim, 8}, {}}};
  }
  return Must(BuildMetaGraph(request));
}

// A copy of the state in memory of the device.
struct DeviceVariables {
  DeviceVariables(device::Device& device, const worker::TestVariables& from) {
    const auto stream = Must(device.NewStream());
    size_t i = 0;
    for (const Tensor& tensor : from.tensors) sizes.push_back(static_cast<size_t>(tensor.byte_size()));
    for (const Tensor& tensor : from.tensors) {
      buffers.push_back(Must(device.Allocate(std::max<size_t>(sizes[i], 1))));
      MustOk(stream->CopyToDevice(buffers.back()->address(), tensor.data(), sizes[i++]));
      for (const auto& [name, address] : from.addresses) {
        if (address == tensor.data()) addresses[name] = buffers.back()->address();
      }
    }
    MustOk(stream->Synchronize());
  }
  std::vector<size_t> sizes;
  std::vector<std::unique_ptr<device::Buffer>> buffers;
  std::map<std::string, std::byte*> addresses;
};

std::vector<std::vector<float>> Pass(Plan& plan, const Graph& graph) {
  const worker::TestInputs inputs(plan.inputs(), 5);
  MustOk(plan.RefreshVariables());
  MustOk(plan.RunPass(inputs.bytes, {}));
  std::vector<std::vector<float>> outputs;
  for (const std::string& name : graph.outputs) outputs.push_back(worker::ReadFloats(plan, name));
  return outputs;
}

TEST_CASE("padded classes: a GPU's pass has the loss and the gradients of the graph as it is", "[cuda]") {
  const std::string architecture = GENERATE("mlp", "gpt2");
  CAPTURE(architecture);
  const MetaGraph metagraph = Model(architecture);
  const Graph graph = Must(MakeTrainingGraph(metagraph)).graph;
  worker::TestVariables variables(metagraph, 3);
  const auto reference = Must(device::MakeDevice(device::DeviceKind::kReference, {}));
  const auto cuda = Must(device::MakeCudaDevice({}));
  const DeviceVariables on_device(*cuda, variables);
  const auto defined = Must(Plan::Make(reference.get(), graph, variables.addresses, {.fuse = false}));
  const auto planned = Must(Plan::Make(cuda.get(), graph, on_device.addresses, {}));
  int padded = 0;
  for (const worker::PlannedStep& step : planned->Describe()) {
    padded += absl::StrContains(step.text, ".padded") ? 1 : 0;
  }
  // Weights, labels, and what is cut off the gradient of the weights, of a bias that of the bias, too.
  CHECK(padded >= 4);

  const auto expected = Pass(*defined, graph), got = Pass(*planned, graph);

  for (size_t i = 0; i < expected.size(); ++i) {
    INFO(graph.outputs[i]);
    REQUIRE(got[i].size() == expected[i].size());
    float largest = 0;
    for (const float value : expected[i]) largest = std::max(largest, std::fabs(value));
    CHECK(largest > 0);
    // Sums of products go in another order, and a rounding to BF16 may then go the other way.
    for (size_t j = 0; j < expected[i].size(); ++j) {
      CAPTURE(j, expected[i][j], got[i][j]);
      REQUIRE(std::fabs(expected[i][j] - got[i][j]) <= 0x1p-6f * largest);
    }
  }
}

}  // namespace
}  // namespace lockstep
