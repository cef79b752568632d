#include "common/graph/passes/join_products.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"

namespace lockstep {
namespace {

// Products of `rows` rows, a gradient of [24, 16] each, and their sum "sum".
Graph SumOfProducts(int products, int64_t rows) {
  Graph graph;
  std::string sum;
  for (int i = 0; i < products; ++i) {
    const std::string a = "a" + std::to_string(i), b = "b" + std::to_string(i), y = "y" + std::to_string(i);
    graph.inputs.push_back({a, DType::kF32, {rows, 24}});
    graph.inputs.push_back({b, DType::kF32, {rows, 16}});
    graph.nodes.push_back({y, OpType::kGemm, {a, b}, {y}, GemmAttributes{.trans_a = true}});
    if (i > 0) {
      const std::string next = i + 1 == products ? "sum" : "sum" + std::to_string(i);
      graph.nodes.push_back({next, OpType::kAdd, {sum, y}, {next}, NoAttributes{}});
      sum = next;
    } else {
      sum = y;
    }
  }
  graph.outputs = {"sum"};
  return graph;
}

int Join(Graph* graph) {
  REQUIRE(InferShapes(graph).ok());
  const absl::StatusOr<int> joined = JoinProducts(graph);
  REQUIRE(joined.ok());
  REQUIRE(InferShapes(graph).ok());
  return *joined;
}

int64_t Count(const Graph& graph, OpType op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(), [op](const Node& node) { return node.op == op; });
}

TEST_CASE("join products: a sum of products of few rows is one product", "[graph]") {
  Graph graph = SumOfProducts(4, 5);

  CHECK(Join(&graph) == 1);

  CHECK(graph.nodes.size() == 3);
  CHECK(Count(graph, OpType::kGemm) == 1);
  CHECK(graph.values.at("lockstep.joined.sum.left").shape == Shape{20, 24});
  CHECK(graph.values.at("lockstep.joined.sum.right").shape == Shape{20, 16});
  CHECK(graph.values.at("sum").shape == Shape{24, 16});
}

TEST_CASE("join products: many rows cost more to copy than gradients to add", "[graph]") {
  Graph graph = SumOfProducts(4, 50);

  CHECK(Join(&graph) == 0);

  CHECK(graph.nodes.size() == 7);
}

TEST_CASE("join products: what is read elsewhere stays, and so do terms that are no such product", "[graph]") {
  Graph graph = SumOfProducts(5, 5);
  std::get<GemmAttributes>(graph.nodes[1].attributes).alpha = 0.5;  // y1
  graph.nodes.push_back({"exp", OpType::kExp, {"y3"}, {"exp"}, NoAttributes{}});
  graph.outputs.push_back("exp");

  CHECK(Join(&graph) == 1);

  // y0, y2 and y4 are one; y1 and y3 are added to it.
  CHECK(graph.values.at("lockstep.joined.sum.left").shape == Shape{15, 24});
  CHECK(Count(graph, OpType::kGemm) == 3);
  CHECK(Count(graph, OpType::kAdd) == 2);
  CHECK(graph.nodes.back().op == OpType::kExp);
}

TEST_CASE("join products: rows that are joined anyway are joined once", "[graph]") {
  Graph graph = SumOfProducts(3, 5);
  graph.nodes.push_back({"rows", OpType::kConcat, {"a0", "a1", "a2"}, {"rows"}, ConcatAttributes{0}});
  graph.nodes.push_back({"exp", OpType::kExp, {"rows"}, {"exp"}, NoAttributes{}});
  graph.outputs.push_back("exp");
  std::reverse(graph.nodes[2].inputs.begin(), graph.nodes[2].inputs.end());  // sum1: the last product comes first
  std::reverse(graph.nodes[4].inputs.begin(), graph.nodes[4].inputs.end());

  CHECK(Join(&graph) == 1);

  CHECK(Count(graph, OpType::kConcat) == 2);
  CHECK(graph.nodes.back().inputs[0] == "lockstep.joined.sum.left");
}

TEST_CASE("join products: joined rows may be an operand of what is joined next", "[graph]") {
  Graph graph = SumOfProducts(2, 5);
  std::reverse(graph.nodes[2].inputs.begin(), graph.nodes[2].inputs.end());
  graph.inputs.push_back({"c", DType::kF32, {10, 16}});
  graph.nodes.push_back({"rows", OpType::kConcat, {"a0", "a1"}, {"rows"}, ConcatAttributes{0}});
  for (const char* name : {"u", "v"}) {
    graph.nodes.push_back({name, OpType::kGemm, {"rows", "c"}, {name}, GemmAttributes{.trans_a = true}});
  }
  graph.nodes.push_back({"next", OpType::kAdd, {"u", "v"}, {"next"}, NoAttributes{}});
  graph.outputs.push_back("next");

  CHECK(Join(&graph) == 2);

  CHECK(graph.values.at("lockstep.joined.next.left").shape == Shape{20, 24});
  CHECK(graph.values.count("rows") == 0);
}

TEST_CASE("join products: a sum that is an output itself is none of a longer sum", "[graph]") {
  Graph graph = SumOfProducts(4, 5);
  graph.outputs.push_back("sum2");

  CHECK(Join(&graph) == 1);

  CHECK(Count(graph, OpType::kAdd) == 1);
  CHECK(Count(graph, OpType::kGemm) == 2);
  CHECK(graph.values.at("lockstep.joined.sum2.left").shape == Shape{15, 24});
}

}  // namespace
}  // namespace lockstep
