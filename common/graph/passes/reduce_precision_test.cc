// Which values of a graph become BF16.
#include "common/graph/passes/reduce_precision.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "common/tensor/bf16.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

class GraphOf {
 public:
  explicit GraphOf(std::vector<GraphInput> inputs) { graph_.inputs = std::move(inputs); }
  void Parameter(const std::string& name, Shape shape) { graph_.variables.push_back({name, DType::kF32, shape}); }
  void Constant(const std::string& name, Tensor value) {
    graph_.constants.push_back({name, std::make_shared<const Tensor>(std::move(value))});
  }
  void Op(OpType op, std::vector<std::string> inputs, const std::string& output,
          OpAttributes attributes = NoAttributes{}) {
    graph_.nodes.push_back({output, op, std::move(inputs), {output}, std::move(attributes)});
  }
  Graph Reduced() {
    REQUIRE(InferShapes(&graph_).ok());
    const absl::Status status = ReducePrecision(&graph_);
    INFO(status.ToString());
    REQUIRE(status.ok());
    return graph_;
  }

 private:
  Graph graph_;
};

TEST_CASE("bf16: products narrow, what follows stays narrow, sums and exponentials widen", "[graph]") {
  GraphOf of({{"x", DType::kF32, {4, 8}}});
  of.Parameter("w", {8, 8});
  of.Parameter("b", {8});
  of.Op(OpType::kAdd, {"x", "b"}, "before");
  of.Op(OpType::kMatMul, {"before", "w"}, "product");
  of.Op(OpType::kAdd, {"product", "b"}, "sum");
  of.Op(OpType::kExp, {"sum"}, "exp");
  of.Op(OpType::kMul, {"exp", "sum"}, "after");
  of.Op(OpType::kCast, {"after"}, "stated", CastAttributes{DType::kF32});

  const Graph graph = of.Reduced();

  CHECK(graph.values.at("before").dtype == DType::kF32);
  CHECK(graph.values.at("product").dtype == DType::kBF16);
  CHECK(graph.values.at("sum").dtype == DType::kBF16);
  CHECK(graph.values.at("exp").dtype == DType::kF32);
  CHECK(graph.values.at("after").dtype == DType::kBF16);
  CHECK(graph.values.at("stated").dtype == DType::kF32);
}

TEST_CASE("bf16: what is gathered from a table is rounded, the table is not", "[graph]") {
  GraphOf of({{"tokens", DType::kI64, {4, 5}}});
  of.Parameter("table", {100, 8});
  of.Op(OpType::kGather, {"table", "tokens"}, "embedded", GatherAttributes{});

  const Graph graph = of.Reduced();

  CHECK(graph.values.at("embedded").dtype == DType::kBF16);
  for (const Node& node : graph.nodes) {
    if (node.op == OpType::kGather) CHECK(node.inputs[0] == "table");
  }
}

TEST_CASE("bf16: scales and statistics of norms stay float32", "[graph]") {
  GraphOf of({{"x", DType::kF32, {4, 8}}});
  of.Parameter("w", {8, 8});
  of.Parameter("scale", {8});
  of.Op(OpType::kMatMul, {"x", "w"}, "product");
  of.Op(OpType::kLayerNormalization, {"product", "scale"}, "norm", LayerNormAttributes{.axis = -1});

  const Graph graph = of.Reduced();

  CHECK(graph.nodes.back().inputs[1] == "scale");
  CHECK(graph.values.at("norm").dtype == DType::kBF16);
}

TEST_CASE("bf16: a constant is rounded once, and a finite one stays finite", "[graph]") {
  constexpr float kMost = std::numeric_limits<float>::max();
  GraphOf of({{"x", DType::kF32, {4, 8}}});
  of.Parameter("w", {8, 3});
  of.Constant("mask", Tensor::Of<float>({3}, {-kMost, -std::numeric_limits<float>::infinity(), 0.1f}));
  of.Op(OpType::kMatMul, {"x", "w"}, "product");
  of.Op(OpType::kAdd, {"product", "mask"}, "masked");

  const Graph graph = of.Reduced();

  const std::string& name = graph.nodes.back().inputs[1];
  const auto rounded = std::find_if(graph.constants.begin(), graph.constants.end(),
                                    [&](const struct Constant& c) { return c.name == name; });
  REQUIRE(rounded != graph.constants.end());
  const auto* values = reinterpret_cast<const Bf16*>(rounded->value->data());
  CHECK(std::isfinite(values[0]));
  CHECK(static_cast<float>(values[0]) < -3e38f);
  CHECK(std::isinf(static_cast<float>(values[1])));
  CHECK(static_cast<float>(values[2]) == Approx(0.1f).epsilon(4e-3));
}

const Node& ProducerOf(const Graph& graph, const std::string& value) {
  const auto found =
      std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return node.outputs[0] == value; });
  REQUIRE(found != graph.nodes.end());
  return *found;
}

TEST_CASE("bf16: what no variable reaches stays float32, and finite, until it meets BF16", "[graph]") {
  GraphOf of({{"positions", DType::kF32, {5, 1}}, {"mask", DType::kF32, {5, 6}}, {"x", DType::kF32, {5, 8}}});
  of.Parameter("w", {8, 6});
  of.Constant("frequencies", Tensor::Of<float>({1, 6}, {1, 0.5, 0.25, 0.1f, 0.05f, 0.01f}));
  of.Constant("most", Tensor::Of<float>({}, {-std::numeric_limits<float>::max()}));
  of.Op(OpType::kMatMul, {"positions", "frequencies"}, "angles");
  of.Op(OpType::kMul, {"mask", "most"}, "hidden");
  of.Op(OpType::kMatMul, {"x", "w"}, "scores");
  of.Op(OpType::kAdd, {"scores", "hidden"}, "masked");

  const Graph graph = of.Reduced();

  CHECK(graph.values.at("angles").dtype == DType::kF32);
  CHECK(graph.values.at("hidden").dtype == DType::kF32);
  CHECK(graph.values.at("masked").dtype == DType::kBF16);
  const Node& cast = ProducerOf(graph, ProducerOf(graph, "masked").inputs[1]);
  CHECK(ProducerOf(graph, cast.inputs[0]).op == OpType::kClip);
}

TEST_CASE("bf16: parameters are cast in front of everything, before they are transposed", "[graph]") {
  GraphOf of({{"x", DType::kF32, {4, 8}}});
  of.Parameter("w", {8, 8});
  of.Parameter("b", {8});
  of.Op(OpType::kTranspose, {"w"}, "wt", TransposeAttributes{{1, 0}});
  of.Op(OpType::kMatMul, {"x", "wt"}, "product");
  of.Op(OpType::kAdd, {"product", "b"}, "sum");

  const Graph graph = of.Reduced();

  const Node& transposed = ProducerOf(graph, ProducerOf(graph, "product").inputs[1]);
  CHECK(transposed.op == OpType::kTranspose);
  CHECK(ProducerOf(graph, transposed.inputs[0]).inputs[0] == "w");
  REQUIRE(graph.nodes.size() > 3);
  CHECK(graph.nodes[0].op == OpType::kCast);
  CHECK(graph.nodes[2].inputs[0] == "b");
}

TEST_CASE("bf16: results of one element are float32", "[graph]") {
  GraphOf of({{"x", DType::kF32, {4, 8}}});
  of.Parameter("w", {8, 8});
  of.Parameter("v", {8, 1});
  of.Op(OpType::kMatMul, {"x", "w"}, "product");
  of.Op(OpType::kReduceMax, {"product"}, "largest", ReduceAttributes{{0}, true, false});
  of.Op(OpType::kMatMul, {"largest", "v"}, "number");

  CHECK(of.Reduced().values.at("number").dtype == DType::kF32);
}

TEST_CASE("bf16: an op does not mix it with float32", "[graph]") {
  const ValueInfo narrow{DType::kBF16, {4}}, wide{DType::kF32, {4}};
  const ValueInfo* inputs[] = {&narrow, &wide};
  const Node node{"n", OpType::kAdd, {"a", "b"}, {"y"}, NoAttributes{}};

  const auto infos = InferNode(node, inputs);

  REQUIRE(absl::IsInvalidArgument(infos.status()));
  CHECK_THAT(std::string(infos.status().message()), Contains("node 'n' (Add)") && Contains("input 1 is F32"));
}

}  // namespace
}  // namespace lockstep
