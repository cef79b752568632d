#include "common/graph/passes/follow_batch.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/graph_editor.h"

namespace lockstep {
namespace {

// x [batch, 6], read for batches of 4, with nodes behind it.
Graph ReadForFour(std::vector<Node> nodes, std::vector<Constant> constants = {}) {
  Graph graph;
  graph.inputs = {{"x", DType::kF32, {kBatchDim, 6}}};
  graph.constants = std::move(constants);
  graph.nodes = std::move(nodes);
  graph.outputs = {graph.nodes.back().outputs[0]};
  return graph;
}

Shape OutputAt(Graph graph, int64_t batch) {
  BindBatch(&graph, batch);
  INFO(InferShapes(&graph));
  REQUIRE(InferShapes(&graph).ok());
  return graph.values.at(graph.outputs[0]).shape;
}

}  // namespace

TEST_CASE("follow batch: what states the batch follows another one", "[graph]") {
  const Tensor zeros = Tensor::Zeros(DType::kF32, {4, 6});
  std::vector<Graph> graphs = {
      ReadForFour({{"r", OpType::kReshape, {"x"}, {"y"}, ReshapeAttributes{{4, 2, 3}, true}}}),
      ReadForFour({{"m", OpType::kReduceMean, {"x"}, {"m"}, ReduceAttributes{{1}, true, false}},
                   {"e", OpType::kExpand, {"m"}, {"y"}, ExpandAttributes{{4, 6}}}}),
      ReadForFour({{"a", OpType::kAdd, {"x", "zeros"}, {"y"}, NoAttributes{}}},
                  {{"zeros", std::make_shared<Tensor>(zeros.Clone())}}),
      // A state that begins with zeros, and a step of it.
      ReadForFour({{"p", OpType::kMatMul, {"zeros", "w"}, {"p"}, NoAttributes{}},
                   {"a", OpType::kAdd, {"x", "p"}, {"y"}, NoAttributes{}}},
                  {{"zeros", std::make_shared<Tensor>(zeros.Clone())},
                   {"w", std::make_shared<Tensor>(Tensor::Zeros(DType::kF32, {6, 6}))}}),
      ReadForFour({{"c", OpType::kConcat, {"x", "x"}, {"two"}, ConcatAttributes{0}},
                   {"s", OpType::kSplit, {"two"}, {"y", "z"}, SplitAttributes{0, {4, 4}, 0}}}),
  };
  for (Graph& graph : graphs) {
    CAPTURE(OpName(graph.nodes.back().op));
    const Shape before = OutputAt(graph, 4);
    FollowBatch(&graph, 4);
    CHECK(OutputAt(graph, 4) == before);
    Shape expected = before;
    expected[0] = 3;
    CHECK(OutputAt(graph, 3) == expected);
  }
}

TEST_CASE("follow batch: labels that are each sample's own place are cut for a smaller batch", "[graph]") {
  const Tensor places = Tensor::Of<int64_t>({4}, {0, 1, 2, 3});
  Graph graph = ReadForFour({{"t", OpType::kTranspose, {"x"}, {"t"}, TransposeAttributes{{1, 0}}},
                             {"p", OpType::kMatMul, {"x", "t"}, {"p"}, NoAttributes{}},
                             {"l", OpType::kSoftmaxCrossEntropyLoss, {"p", "places"}, {"y"}, CrossEntropyAttributes{}}},
                            {{"places", std::make_shared<Tensor>(places.Clone())}});

  FollowOtherBatch(&graph, 4, 3);

  CHECK(OutputAt(graph, 3) == Shape{});
  CHECK(graph.constants.back().value->shape() == Shape{3});
  CHECK(graph.constants.back().value->elements<int64_t>()[2] == 2);
}

TEST_CASE("follow batch: a constant with an entry of its own for each sample stays, and so does the only one",
          "[graph]") {
  std::vector<float> places(24);
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<float>(i / 6);
  Graph rows = ReadForFour({{"a", OpType::kAdd, {"x", "places"}, {"y"}, NoAttributes{}}},
                           {{"places", std::make_shared<Tensor>(Tensor::Of<float>({4, 6}, places))}});
  FollowBatch(&rows, 4);
  CHECK(rows.nodes[0].inputs[1] == "places");

  // Nothing else has four rows here, so that one row would make another result.
  Graph only = ReadForFour({{"n", OpType::kNeg, {"zeros"}, {"y"}, NoAttributes{}}},
                           {{"zeros", std::make_shared<Tensor>(Tensor::Zeros(DType::kF32, {4, 6}))}});
  FollowBatch(&only, 4);
  CHECK(OutputAt(only, 4) == Shape{4, 6});
}

}  // namespace lockstep
