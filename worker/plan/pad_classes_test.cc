// Scores of a number of classes whose rows of BF16 begin off 16 bytes, and what is computed from them.
#include "worker/plan/pad_classes.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "worker/device/choice/devices.h"
#include "worker/plan/plan.h"
#include "worker/plan/plan_test_models.h"
#include "worker/plan/rewrite.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kOddClasses = kLeastPaddedClasses + 7;
constexpr int64_t kAllClasses = kLeastPaddedClasses + kPaddedClassesMultiple;

// The head's bias is that of an mlp; GPT's head has none, and the table of tokens for weights.
MetaGraph Model(const std::string& architecture, int64_t classes, Precision precision = Precision::kBf16) {
  MetaGraphRequest request = ImageRequest("mlp", 4);
  request.loss.mixes_labels = architecture == "mixing mlp";
  request.precision = precision;
  request.model.hidden_sizes = {16};
  request.model.outputs = classes;
  if (architecture == "gpt2") {
    request.model = {.architecture = "gpt2", .layers = 1, .heads = 2, .width = 16, .context = 8, .vocabulary = classes};
    request.inputs = {{"tokens", "tokens", InputRole::kFeature, DType::kI64, {kBatchDim, 8}, {}},
                      {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim, 8}, {}}};
  }
  return Must(BuildMetaGraph(request));
}

Graph TrainingGraphOf(const MetaGraph& metagraph) { return RewriteForPlan(Must(MakeTrainingGraph(metagraph)).graph); }

// The bits of all outputs of one pass, by the definition; `label` replaces the first one.
std::vector<std::vector<uint32_t>> Bits(const MetaGraph& metagraph, const Graph& graph, int64_t label) {
  const auto device = Must(device::MakeDevice(device::DeviceKind::kReference, {}));
  const TestVariables variables(metagraph, 3);
  const auto plan = Must(Plan::Make(device.get(), graph, variables.addresses, {.fuse = false}));
  TestInputs inputs(plan->inputs(), 5);
  for (size_t i = 0; i < inputs.tensors.size(); ++i) {
    if (plan->inputs()[i].name == "labels") inputs.tensors[i].elements<int64_t>()[0] = label;
  }
  MustOk(plan->RefreshVariables());
  MustOk(plan->RunPass(inputs.bytes, {}));
  std::vector<std::vector<uint32_t>> outputs;
  for (const std::string& name : graph.outputs) {
    const std::vector<float> values = ReadFloats(*plan, name);
    std::memcpy(outputs.emplace_back(values.size()).data(), values.data(), values.size() * sizeof(float));
  }
  return outputs;
}

TEST_CASE("padded classes: loss and gradients keep every bit, also where a label is no class", "[plan]") {
  const std::string architecture = GENERATE("mlp", "mixing mlp", "gpt2");
  const int64_t label = GENERATE(kOddClasses - 1, kOddClasses, kAllClasses - 1, kAllClasses, -1);
  CAPTURE(architecture, label);
  const MetaGraph metagraph = Model(architecture, kOddClasses);
  const Graph graph = TrainingGraphOf(metagraph);
  Graph padded = graph;

  REQUIRE(PadClasses(&padded) == 1);

  const auto expected = Bits(metagraph, graph, label);
  float loss = 0;
  std::memcpy(&loss, expected[0].data(), sizeof loss);
  CHECK(std::isfinite(loss) == (label == kOddClasses - 1));
  CHECK((Bits(metagraph, padded, label) == expected));
  CHECK(PadClasses(&padded) == 0);
}

TEST_CASE("padded classes: every product of scores and of their gradient has rows that begin on 16 bytes", "[plan]") {
  for (const std::string architecture : {"mlp", "gpt2"}) {
    CAPTURE(architecture);
    Graph graph = TrainingGraphOf(Model(architecture, kOddClasses));
    REQUIRE(PadClasses(&graph) == 1);

    int wide = 0;
    for (const Node& node : graph.nodes) {
      if (node.op != OpType::kGemm && node.op != OpType::kMatMul && node.op != OpType::kBatchMatMul) continue;
      CAPTURE(node.name);
      for (const std::string& value : {node.inputs[0], node.inputs[1], node.outputs[0]}) {
        const Shape& shape = graph.values.at(value).shape;
        CHECK(std::count(shape.begin(), shape.end(), kOddClasses) == 0);
        wide += std::count(shape.begin(), shape.end(), kAllClasses) > 0 ? 1 : 0;
      }
    }
    CHECK(wide == 3 * 2);
  }
}

TEST_CASE("padded classes: scores that are aligned, few, float32 or read by others stay as they are", "[plan]") {
  Graph aligned = TrainingGraphOf(Model("mlp", kLeastPaddedClasses + 8));
  Graph few = TrainingGraphOf(Model("mlp", kLeastPaddedClasses - 1));
  Graph wide = TrainingGraphOf(Model("mlp", kOddClasses, Precision::kFloat32));
  const MetaGraph metagraph = Model("mlp", kOddClasses);
  Graph counted = RewriteForPlan(Must(MakeEvaluationGraph(metagraph, 4)).graph);

  for (Graph* graph : {&aligned, &few, &wide, &counted}) {
    const std::vector<Node> nodes = graph->nodes;
    CHECK(PadClasses(graph) == 0);
    CHECK((graph->nodes == nodes));
  }
}

TEST_CASE("padded classes: a plan for a host's processor has none", "[plan]") {
  const Graph graph = Must(MakeTrainingGraph(Model("gpt2", kOddClasses))).graph;
  const auto device = Must(device::MakeDevice(device::DeviceKind::kCpu, {}));

  for (const PlannedStep& step : Must(Plan::Draft(device.get(), graph, {}))->Describe()) {
    CHECK_THAT(step.text, !Catch::Contains(".padded"));
  }
}

}  // namespace
}  // namespace lockstep::worker
