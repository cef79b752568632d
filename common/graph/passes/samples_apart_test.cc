#include "common/graph/passes/samples_apart.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "common/graph/passes/prediction_graph.h"
#include "common/graph/passes/training_graph.h"

namespace lockstep {
namespace {

constexpr int64_t kBatch = 4;
constexpr int64_t kWidth = 6;

// Images for convolutions, tokens for what reads text.
MetaGraph BuiltIn(const ModelSpec& model, bool tokens) {
  MetaGraphRequest request;
  request.model = model;
  const Shape shape = tokens ? Shape{kBatchDim, 8} : Shape{kBatchDim, 3, 32, 32};
  request.inputs = {{"inputs", "inputs", InputRole::kFeature, tokens ? DType::kI64 : DType::kF32, shape, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  if (model.architecture == "gpt2") request.inputs[1].shape = {kBatchDim, 8};
  request.update.schedule.lr = 0.1;
  request.pass_batch = kBatch;
  const auto metagraph = BuildMetaGraph(request);
  INFO(model.architecture << ": " << metagraph.status());
  REQUIRE(metagraph.ok());
  return *metagraph;
}

// A graph of x [batch, width] with nodes, whose last output is its own.
Graph Following(const std::vector<Node>& nodes) {
  Graph graph;
  AppendInput(&graph, {"x", DType::kF32, {kBatch, kWidth}});
  for (const Node& node : nodes) REQUIRE(AppendNode(&graph, node) == absl::OkStatus());
  graph.outputs = {nodes.back().outputs[0]};
  return graph;
}

Node Op(OpType op, std::vector<std::string> inputs, const std::string& output, OpAttributes attributes = {}) {
  return {output, op, std::move(inputs), {output}, std::move(attributes)};
}

}  // namespace

TEST_CASE("samples apart: those of every built-in model, in evaluations and predictions, with bf16 as well",
          "[graph]") {
  const bool bf16 = GENERATE(false, true);
  const ModelSpec text = {.outputs = 3, .layers = 2, .heads = 2, .width = 16, .context = 8, .vocabulary = 32};
  for (const std::string name : {"mlp", "lenet", "resnet18", "resnet50", "vit", "gpt2", "bert"}) {
    ModelSpec model = text;
    model.architecture = name;
    model.batch_norm = true;
    model.dropout = name == "mlp" || name == "gpt2" ? 0.1 : 0.0;
    MetaGraph metagraph = BuiltIn(model, name == "gpt2" || name == "bert");
    metagraph.precision = bf16 ? Precision::kBf16 : Precision::kFloat32;
    INFO(name);
    for (const int64_t batch : {2, 3, 8}) {
      CHECK(MakeEvaluationGraph(metagraph, batch)->samples_apart);
      CHECK(SamplesAreApart(*MakePredictionGraph(metagraph, metagraph.loss.output, batch), batch));
    }
  }
}

TEST_CASE("samples apart: what looks across the batch is found", "[graph]") {
  const std::vector<std::vector<Node>> graphs = {
      // Centred by the mean of the batch.
      {Op(OpType::kReduceMean, {"x"}, "mean", ReduceAttributes{{0}, true, false}),
       Op(OpType::kSub, {"x", "mean"}, "y")},
      // Every sample with every other one.
      {Op(OpType::kTranspose, {"x"}, "t", TransposeAttributes{{1, 0}}), Op(OpType::kMatMul, {"x", "t"}, "y")},
      {Op(OpType::kSoftmax, {"x"}, "y", SoftmaxAttributes{0})},
      {Op(OpType::kSlice, {"x"}, "y", SliceAttributes{{3, 0}, {-5, 6}, {0, 1}, {-1, 1}})},
      {Op(OpType::kCumSum, {"x"}, "y", CumSumAttributes{0, false, false})},
      // Rows that are parts of two samples.
      {Op(OpType::kReshape, {"x"}, "y", ReshapeAttributes{{3, 8}, true})},
      {Op(OpType::kReshape, {"x"}, "r", ReshapeAttributes{{6, 4}, true}),
       Op(OpType::kSoftmax, {"r"}, "s", SoftmaxAttributes{1}),
       Op(OpType::kReshape, {"s"}, "y", ReshapeAttributes{{4, 6}, true})},
      // Two samples and two others, changed over.
      {{"halves", OpType::kSplit, {"x"}, {"h0", "h1"}, SplitAttributes{0, {2, 2}, 0}},
       Op(OpType::kConcat, {"h1", "h0"}, "y", ConcatAttributes{0})},
      {Op(OpType::kConcat, {"x", "x"}, "y", ConcatAttributes{0})},
      // Samples in the second dimension are not rows.
      {Op(OpType::kTranspose, {"x"}, "y", TransposeAttributes{{1, 0}})},
      {Op(OpType::kTile, {"x"}, "y", TileAttributes{{2, 1}})},
  };
  for (const std::vector<Node>& nodes : graphs) {
    INFO(OpName(nodes.back().op) << " of " << nodes.size());
    CHECK_FALSE(SamplesAreApart(Following(nodes), kBatch));
  }
}

TEST_CASE("samples apart: they are followed where models fold them into other dimensions", "[graph]") {
  const std::vector<std::vector<Node>> graphs = {
      // Positions as rows, and back.
      {Op(OpType::kReshape, {"x"}, "r", ReshapeAttributes{{12, 2}, true}),
       Op(OpType::kSoftmax, {"r"}, "s", SoftmaxAttributes{1}),
       Op(OpType::kReshape, {"s"}, "y", ReshapeAttributes{{4, 6}, true})},
      // Time first, and windows of it.
      {Op(OpType::kReshape, {"x"}, "r", ReshapeAttributes{{4, 3, 2}, true}),
       Op(OpType::kTranspose, {"r"}, "t", TransposeAttributes{{1, 0, 2}}),
       Op(OpType::kReshape, {"t"}, "f", ReshapeAttributes{{12, 2}, true}), Op(OpType::kRelu, {"f"}, "a"),
       Op(OpType::kReshape, {"a"}, "u", ReshapeAttributes{{3, 4, 2}, true}),
       Op(OpType::kReduceSum, {"u"}, "y", ReduceAttributes{{0}, false, false})},
      // Steps of a sequence, one behind another, and joined again.
      {Op(OpType::kReshape, {"x"}, "r", ReshapeAttributes{{4, 3, 2}, true}),
       Op(OpType::kTranspose, {"r"}, "t", TransposeAttributes{{1, 0, 2}}),
       Op(OpType::kReshape, {"t"}, "f", ReshapeAttributes{{12, 2}, true}),
       {"steps", OpType::kSplit, {"f"}, {"s0", "s1", "s2"}, SplitAttributes{0, {4, 4, 4}, 0}},
       Op(OpType::kConcat, {"s2", "s1", "s0"}, "back", ConcatAttributes{0}),
       Op(OpType::kReshape, {"back"}, "u", ReshapeAttributes{{3, 4, 2}, true}),
       Op(OpType::kReduceSum, {"u"}, "y", ReduceAttributes{{0}, false, false})},
      // A mean of each sample, taken from it.
      {Op(OpType::kReduceMean, {"x"}, "mean", ReduceAttributes{{1}, true, false}),
       Op(OpType::kSub, {"x", "mean"}, "y")},
      // Each sample's own products.
      {Op(OpType::kReshape, {"x"}, "r", ReshapeAttributes{{4, 3, 2}, true}),
       Op(OpType::kTranspose, {"r"}, "t", TransposeAttributes{{0, 2, 1}}), Op(OpType::kMatMul, {"r", "t"}, "y")},
  };
  for (const std::vector<Node>& nodes : graphs) {
    INFO(OpName(nodes.back().op) << " of " << nodes.size());
    CHECK(SamplesAreApart(Following(nodes), kBatch));
  }
}

TEST_CASE("samples apart: a batch of one sample has no others", "[graph]") {
  Graph graph;
  AppendInput(&graph, {"x", DType::kF32, {1, kWidth}});
  REQUIRE(AppendNode(&graph, Op(OpType::kSoftmax, {"x"}, "y", SoftmaxAttributes{0})) == absl::OkStatus());
  graph.outputs = {"y"};

  CHECK(SamplesAreApart(graph, 1));
}

}  // namespace lockstep
