// What passes make of the graph that trains.
#include "common/graph/passes/training_graph.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "common/graph/build/lenet_metagraph.h"
#include "common/graph/serialize.h"
#include "common/graph/validate.h"

namespace lockstep {
namespace {

int CountOf(const Graph& graph, OpType op) {
  return static_cast<int>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return node.op == op; }));
}

TEST_CASE("training graph: the gradients of norms take up what comes by the residual connections", "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.model = {.architecture = "gpt2", .layers = 2, .heads = 2, .width = 16, .context = 8, .vocabulary = 32};
  request.inputs = {{"tokens", "tokens", InputRole::kFeature, DType::kI64, {kBatchDim, 8}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim, 8}, {}}};
  request.pass_batch = 4;

  const TrainingGraph training = MakeTrainingGraph(BuildMetaGraph(request).value()).value();

  // Two norms in each layer stand beside a residual connection, the last one does not.
  CHECK(CountOf(training.graph, OpType::kLayerNormGrad) == 5);
  int fused = 0;
  for (const Node& node : training.graph.nodes) fused += node.op == OpType::kLayerNormGrad && node.inputs.size() == 6;
  CHECK(fused == 4);
}

TEST_CASE("training graph: values that can be counted one by one, but not together, are refused", "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.pass_batch = int64_t{1} << 47;

  const auto metagraph = BuildMetaGraph(request);

  REQUIRE_FALSE(metagraph.ok());
  CHECK_THAT(std::string(metagraph.status().message()), Catch::Contains("the values of a pass have more than"));
  const MetaGraph small = Lenet();
  CHECK(MakeEvaluationGraph(small, 8).ok());
  CHECK_FALSE(MakeEvaluationGraph(small, int64_t{1} << 47).ok());
}

TEST_CASE("metagraph: a state that no integer counts is refused", "[graph]") {
  MetaGraph metagraph = Lenet();
  for (Variable& variable : metagraph.forward.variables) variable.shape = {int64_t{1} << 55};

  CHECK_THAT(std::string(ValidateMetaGraph(metagraph).message()), Catch::Contains("the state has more than"));
}

TEST_CASE("training graph: a buffer that becomes what a dropout leaves out is refused", "[graph]") {
  MetaGraph metagraph = Lenet();
  metagraph.forward.variables.push_back({"s", DType::kF32, {2}, VariableKind::kStatistic, {}});
  DropoutAttributes nothing;
  nothing.ratio = 0.0;
  metagraph.forward.nodes.push_back({"keep", OpType::kDropout, {"s"}, {"stat.s"}, nothing});
  REQUIRE(ValidateMetaGraph(metagraph).ok());

  const auto training = MakeTrainingGraph(metagraph);

  CHECK_THAT(std::string(training.status().message()), Catch::Contains("the buffer 's' would become 'stat.s'"));
}

// The element types of the operands of the graph's nodes of one op.
std::set<DType> TypesOf(const Graph& graph, OpType op) {
  std::set<DType> types;
  for (const Node& node : graph.nodes) {
    if (node.op != op) continue;
    for (const std::string& input : node.inputs) types.insert(graph.values.at(input).dtype);
  }
  return types;
}

TEST_CASE("training graph: with bf16, passes compute with it, and state, losses and gradients are float32", "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.precision = Precision::kBf16;
  const MetaGraph metagraph = BuildMetaGraph(request).value();

  const TrainingGraph training = MakeTrainingGraph(metagraph).value();
  const EvaluationGraph evaluation = MakeEvaluationGraph(metagraph, 10).value();

  for (const OpType op : {OpType::kConv, OpType::kGemm, OpType::kConvGradWeight, OpType::kConvGradInput}) {
    CHECK(TypesOf(training.graph, op) == std::set{DType::kBF16});
  }
  CHECK(TypesOf(evaluation.graph, OpType::kConv) == std::set{DType::kBF16});
  CHECK(TypesOf(evaluation.graph, OpType::kCountCorrect).count(DType::kBF16) == 0);
  for (const Graph* graph : {&training.graph, &evaluation.graph}) {
    for (const std::string& output : graph->outputs) {
      INFO(output);
      CHECK(graph->values.at(output).dtype != DType::kBF16);
    }
    for (const Variable& variable : graph->variables) CHECK(variable.dtype == DType::kF32);
  }
  CHECK(Fingerprint(metagraph).value() != Fingerprint(Lenet()).value());
  CHECK(ParseMetaGraph(SerializeMetaGraph(metagraph).value())->precision == Precision::kBf16);
}

TEST_CASE("training graph: with bf16 a cross entropy and its gradient read the scores that a product wrote",
          "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.precision = Precision::kBf16;

  const Graph graph = MakeTrainingGraph(BuildMetaGraph(request).value()).value().graph;

  // By value, the op that makes it.
  std::map<std::string, OpType> made;
  for (const Node& node : graph.nodes) made.emplace(node.outputs[0], node.op);
  int losses = 0;
  for (const Node& node : graph.nodes) {
    const bool gradient = node.op == OpType::kSoftmaxCrossEntropyLossGrad;
    if (!gradient && node.op != OpType::kSoftmaxCrossEntropyLoss) continue;
    ++losses;
    CHECK(made.at(node.inputs[gradient ? 1 : 0]) == OpType::kGemm);
    CHECK(graph.values.at(node.outputs[0]).dtype == (gradient ? DType::kBF16 : DType::kF32));
  }
  CHECK(losses == 2);
}

TEST_CASE("training graph: labels that are mixed are two inputs more, in float32 beside bf16, and a field of the file",
          "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.loss.mixes_labels = true;
  request.precision = Precision::kBf16;
  const MetaGraph metagraph = BuildMetaGraph(request).value();

  const Graph graph = MakeTrainingGraph(metagraph).value().graph;

  REQUIRE(graph.inputs.size() == 4);
  CHECK(graph.inputs[2] == GraphInput{kPartnerLabelInput, DType::kI64, {32}});
  CHECK(graph.inputs[3] == GraphInput{kShareInput, DType::kF32, {32}});
  CHECK(CountOf(graph, OpType::kSoftmaxCrossEntropyLoss) == 2);
  CHECK(graph.values.at(kLossSum).dtype == DType::kF32);
  CHECK(graph.values.at(kLossDenominator).dtype == DType::kF32);
  const EvaluationGraph evaluation = MakeEvaluationGraph(metagraph, 10).value();
  CHECK(evaluation.has_accuracy);
  CHECK(evaluation.graph.inputs.size() == 3);
  CHECK(ParseMetaGraph(SerializeMetaGraph(metagraph).value())->loss.mixes_labels);
  MetaGraph plain = metagraph;
  plain.loss.mixes_labels = false;
  CHECK(Fingerprint(metagraph).value() != Fingerprint(plain).value());
  // A file without the field is one of a job that does not mix.
  CHECK(SerializeMetaGraph(metagraph)->size() == SerializeMetaGraph(plain)->size() + 2);
}

TEST_CASE("metagraph: labels are mixed where it is defined, else refused", "[graph]") {
  MetaGraph metagraph = Lenet();
  metagraph.loss.mixes_labels = true;
  REQUIRE(ValidateMetaGraph(metagraph).ok());
  MetaGraph single = metagraph, weighted = metagraph, mse = metagraph;
  single.pass_batch = 1;
  weighted.loss.class_weights = std::vector<double>(10, 1.0);
  mse.loss.kind = LossKind::kMse;

  CHECK_THAT(std::string(ValidateMetaGraph(single).message()), Catch::Contains("a pass has one sample"));
  CHECK_THAT(std::string(MakeTrainingGraph(single).status().message()), Catch::Contains("passes of two samples"));
  for (const MetaGraph* const refused : {&weighted, &mse}) {
    CHECK_THAT(std::string(ValidateMetaGraph(*refused).message()), Catch::Contains("labels are mixed for a softmax"));
  }
}

TEST_CASE("training graph: a loss that a graph computes with bf16 is float32, and can be differentiated", "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.precision = Precision::kBf16;
  Graph forward = Lenet().forward;
  forward.inputs.pop_back();
  const std::string scores = forward.outputs[0];
  forward.nodes.push_back({"flat", OpType::kReshape, {scores}, {"flat"}, ReshapeAttributes{{1, -1}, true}});
  forward.nodes.push_back({"back", OpType::kTranspose, {"flat"}, {"back"}, TransposeAttributes{{1, 0}}});
  forward.nodes.push_back({"dot", OpType::kMatMul, {"flat", "back"}, {"dot"}, NoAttributes{}});
  forward.nodes.push_back({"half", OpType::kDiv, {"dot", "two"}, {"half"}, NoAttributes{}});
  forward.constants.push_back({"two", std::make_shared<const Tensor>(Tensor::Of<float>({}, {2.0f}))});
  forward.outputs = {"half"};
  request.imported = forward;
  request.loss.kind = LossKind::kGraphOutput;

  const absl::StatusOr<MetaGraph> metagraph = BuildMetaGraph(request);

  INFO(metagraph.status());
  REQUIRE(metagraph.ok());
  const TrainingGraph training = MakeTrainingGraph(*metagraph).value();
  CHECK(training.graph.values.at(training.graph.outputs[0]).dtype == DType::kF32);
}

}  // namespace
}  // namespace lockstep
