// Where a function has no derivative, gradients follow PyTorch's conventions.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/ops/schema.h"
#include "tests/gradients/graph_runner.h"

namespace lockstep {
namespace {

using Numbers = std::vector<double>;

// The first output of a node over vectors and scalars.
Numbers RunTied(OpType op, const OpAttributes& attributes, const std::vector<Numbers>& inputs) {
  Graph graph;
  Node node{"node", op, {}, {"y"}, attributes};
  for (const Numbers& input : inputs) {
    const std::string name = "x" + std::to_string(node.inputs.size());
    const Shape shape = input.size() == 1 ? Shape{} : Shape{static_cast<int64_t>(input.size())};
    graph.inputs.push_back({name, DType::kF64, shape});
    graph.values[name] = {DType::kF64, shape};
    node.inputs.push_back(name);
  }
  REQUIRE(AppendNode(&graph, node).ok());
  const std::unique_ptr<GraphRunner> runner = *GraphRunner::Make(graph);
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::memcpy(runner->value(node.inputs[i]).data(), inputs[i].data(), inputs[i].size() * sizeof(double));
  }
  REQUIRE(runner->Run().ok());
  const absl::Span<const double> values = runner->value("y").elements<double>();
  return Numbers(values.begin(), values.end());
}

ReduceGradAttributes Of(ReduceKind kind) { return {kind, {{}, false, false}}; }

TEST_CASE("ties: equal extremes share their gradient, or the first takes it", "[gradients]") {
  CHECK(RunTied(OpType::kReduceGrad, Of(ReduceKind::kMax), {{6}, {1, 3, 3, 0}, {3}}) == Numbers{0, 3, 3, 0});
  CHECK(RunTied(OpType::kReduceGrad, Of(ReduceKind::kMin), {{6}, {1, 0, 3, 0}, {0}}) == Numbers{0, 3, 0, 3});
  CHECK(RunTied(OpType::kReduceGrad, Of(ReduceKind::kFirstMax), {{6}, {1, 3, 3, 0}, {3}}) == Numbers{0, 6, 0, 0});
}

TEST_CASE("ties: a norm of zero sends nothing back", "[gradients]") {
  CHECK(RunTied(OpType::kReduceGrad, Of(ReduceKind::kL2), {{6}, {0, 0}, {0}}) == Numbers{0, 0});
  CHECK(RunTied(OpType::kReduceGrad, Of(ReduceKind::kL1), {{6}, {0, -2}, {2}}) == Numbers{0, -6});
  CHECK(RunTied(OpType::kLpNormGrad, LpNormAttributes{}, {{6, 1}, {0, 0}}) == Numbers{0, 0});
}

TEST_CASE("ties: a product with zeros sends each factor the product of the others", "[gradients]") {
  CHECK(RunTied(OpType::kReduceGrad, Of(ReduceKind::kProd), {{2}, {3, 0, 5}, {0}}) == Numbers{0, 30, 0});
  CHECK(RunTied(OpType::kReduceGrad, Of(ReduceKind::kProd), {{2}, {0, 0, 5}, {0}}) == Numbers{0, 0, 0});
}

TEST_CASE("ties: a reduction over infinities neither overflows nor turns into NaN", "[gradients]") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const ReduceAttributes all{{}, false, false};
  CHECK(RunTied(OpType::kReduceLogSumExp, all, {{-kInfinity, -kInfinity}}) == Numbers{-kInfinity});
  CHECK(RunTied(OpType::kReduceLogSumExp, all, {{kInfinity, 1}}) == Numbers{kInfinity});
  CHECK(std::abs(RunTied(OpType::kReduceLogSumExp, all, {{1000, 1000}})[0] - 1000.693147180559945) < 1e-9);
  CHECK(std::isnan(RunTied(OpType::kReduceMax, all, {{1, std::nan(""), 3}})[0]));
}

}  // namespace
}  // namespace lockstep
