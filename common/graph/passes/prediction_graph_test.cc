#include "common/graph/passes/prediction_graph.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/passes/training_graph.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

constexpr int64_t kFeatures = 6;

MetaGraphRequest Request() {
  MetaGraphRequest request;
  request.model = {.architecture = "mlp", .outputs = 3, .hidden_sizes = {8}, .dropout = 0.25, .batch_norm = true};
  request.inputs = {{"inputs", "inputs", InputRole::kFeature, DType::kF32, {kBatchDim, kFeatures}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.update.schedule.lr = 0.1;
  request.pass_batch = 4;
  return request;
}

MetaGraph Built(const MetaGraphRequest& request) {
  auto metagraph = BuildMetaGraph(request);
  REQUIRE(metagraph.status() == absl::OkStatus());
  return *std::move(metagraph);
}

// A linear layer with `more` behind it; the output is "given".
MetaGraph WithNode(const Node& more, const std::vector<std::string>& outputs = {"scores", "given"}) {
  MetaGraphRequest request = Request();
  Graph graph;
  graph.inputs = {{"inputs", DType::kF32, {kBatchDim, kFeatures}}};
  graph.variables = {{"weight", DType::kF32, {kFeatures, 3}, VariableKind::kParameter, {}}};
  graph.nodes = {{"layer", OpType::kMatMul, {"inputs", "weight"}, {"scores"}, NoAttributes{}}, more};
  graph.outputs = outputs;
  request.imported = graph;
  request.loss.output = "scores";
  return Built(request);
}

}  // namespace

TEST_CASE("prediction graph: one row per sample, for any batch, without labels and without what only trains",
          "[graph]") {
  const MetaGraph metagraph = Built(Request());
  const int64_t batch = GENERATE(1, 4, 7);

  const auto output = ChoosePrediction(metagraph, "");
  REQUIRE(output.status() == absl::OkStatus());
  const auto graph = MakePredictionGraph(metagraph, *output, batch);

  REQUIRE(graph.status() == absl::OkStatus());
  REQUIRE(graph->outputs.size() == 1);
  CHECK(graph->values.at(graph->outputs[0]) == ValueInfo{DType::kF32, {batch, 3}});
  REQUIRE(graph->inputs.size() == 1);
  CHECK(graph->inputs[0].name == "inputs");
  for (const Node& node : graph->nodes) {
    CHECK(node.op != OpType::kDropout);
    CHECK(node.op != OpType::kDropoutTraining);
    CHECK(node.op != OpType::kBatchNormTraining);
  }
}

TEST_CASE("prediction graph: bf16 models predict in their precision and give float32", "[graph]") {
  MetaGraphRequest request = Request();
  request.precision = Precision::kBf16;
  const MetaGraph metagraph = Built(request);

  const auto graph = MakePredictionGraph(metagraph, *ChoosePrediction(metagraph, ""), 4);

  REQUIRE(graph.status() == absl::OkStatus());
  CHECK(graph->values.at(graph->outputs[0]).dtype == DType::kF32);
  bool casts = false;
  for (const Node& node : graph->nodes) casts = casts || node.op == OpType::kCast;
  CHECK(casts);
}

TEST_CASE("prediction graph: an output is chosen by its name, and an unknown one is told what there is", "[graph]") {
  const MetaGraph metagraph = WithNode({"more", OpType::kRelu, {"scores"}, {"given"}, NoAttributes{}});

  CHECK(*ChoosePrediction(metagraph, "") == "scores");
  CHECK(*ChoosePrediction(metagraph, "given") == "given");
  CHECK_THAT(std::string(ChoosePrediction(metagraph, "taken").status().message()),
             Contains("no output 'taken'") && Contains("scores, given"));
}

TEST_CASE("prediction graph: an output that is not one row per sample is refused", "[graph]") {
  const MetaGraph metagraph =
      WithNode({"more", OpType::kTranspose, {"scores"}, {"given"}, TransposeAttributes{{1, 0}}});

  // With three samples its shape alone would not show it.
  for (const int64_t batch : {2, 3}) {
    const auto graph = MakePredictionGraph(metagraph, "given", batch);
    CHECK(graph.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(graph.status().message()), Contains("'given'") && Contains("not one row for each"));
  }
}

}  // namespace lockstep
