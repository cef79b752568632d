// Einsum as one op, and as the products that training runs: the same results, in float64.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/ops/schema.h"
#include "common/graph/passes/split_einsums.h"
#include "tests/gradients/gradient_check.h"
#include "tests/gradients/graph_runner.h"

namespace lockstep {
namespace {

struct Operand {
  std::string labels;
  Shape shape;
};

struct Equation {
  std::vector<Operand> operands;
  std::string result;

  std::string text() const {
    std::string text;
    for (size_t i = 0; i < operands.size(); ++i) text += (i == 0 ? "" : ",") + operands[i].labels;
    return text + "->" + result;
  }
};

// Up to four operands over five letters, some dimensions 1; the result keeps some of the letters, in any order.
Equation RandomEquation(CaseNumbers& dice) {
  const std::string letters = "abcde";
  std::vector<int64_t> extents;
  for (size_t i = 0; i < letters.size(); ++i) extents.push_back(dice.Int(1, 4));
  const auto some = [&](const std::string& from) {
    std::string chosen;
    for (const char letter : from) {
      if (dice.Coin()) chosen.insert(chosen.begin() + dice.Int(0, static_cast<int64_t>(chosen.size())), letter);
    }
    return chosen;
  };
  Equation equation;
  std::string used;
  for (int64_t i = dice.Int(1, 4); i > 0; --i) {
    Operand operand{some(letters), {}};
    for (const char letter : operand.labels) {
      operand.shape.push_back(dice.Int(0, 5) == 0 ? 1 : extents[letters.find(letter)]);
      if (used.find(letter) == std::string::npos) used += letter;
    }
    equation.operands.push_back(std::move(operand));
  }
  equation.result = some(used);
  return equation;
}

Graph GraphOf(const Equation& equation) {
  Graph graph;
  Node node{"einsum", OpType::kEinsum, {}, {"y"}, EinsumAttributes{equation.text()}};
  for (const Operand& operand : equation.operands) {
    const std::string name = "x" + std::to_string(node.inputs.size());
    graph.inputs.push_back({name, DType::kF64, operand.shape});
    graph.values[name] = {DType::kF64, operand.shape};
    node.inputs.push_back(name);
  }
  const absl::Status status = AppendNode(&graph, std::move(node));
  INFO(equation.text() << ": " << status.ToString());
  REQUIRE(status.ok());
  graph.outputs = {"y"};
  return graph;
}

std::vector<double> Run(const Graph& graph) {
  const std::unique_ptr<GraphRunner> runner = *GraphRunner::Make(graph);
  for (const GraphInput& input : graph.inputs) {
    double next = 0.3 + static_cast<double>(input.name.back());
    for (double& x : runner->value(input.name).elements<double>()) x = std::sin(next += 1.7);
  }
  REQUIRE(runner->Run().ok());
  const absl::Span<const double> y = runner->value("y").elements<double>();
  return {y.begin(), y.end()};
}

TEST_CASE("einsum: as products it gives what it gives as one op", "[gradients]") {
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    CaseNumbers dice(seed);
    const Equation equation = RandomEquation(dice);
    const Graph whole = GraphOf(equation);
    Graph split = whole;
    CAPTURE(seed, equation.text());
    const absl::Status status = SplitEinsums(&split);
    INFO(status.ToString());
    REQUIRE(status.ok());
    CHECK(std::none_of(split.nodes.begin(), split.nodes.end(), [](const Node& n) { return n.op == OpType::kEinsum; }));
    CHECK(split.values.at("y") == whole.values.at("y"));

    const std::vector<double> expected = Run(whole);
    const std::vector<double> got = Run(split);

    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).margin(1e-12));
  }
}

TEST_CASE("einsum: attention becomes two products of matrices, nothing transposed for the first", "[gradients]") {
  Graph scores = GraphOf({{{"bhqd", {2, 3, 5, 4}}, {"bhkd", {2, 3, 7, 4}}}, "bhqk"});
  REQUIRE(SplitEinsums(&scores).ok());
  std::vector<OpType> ops;
  for (const Node& node : scores.nodes) ops.push_back(node.op);
  using Op = OpType;
  CHECK(ops == std::vector{Op::kReshape, Op::kReshape, Op::kBatchMatMul, Op::kReshape, Op::kReshape});
}

TEST_CASE("einsum: a diagonal stays one op", "[gradients]") {
  Graph trace = GraphOf({{{"ii", {3, 3}}}, ""});
  REQUIRE(SplitEinsums(&trace).ok());
  CHECK(trace.nodes.size() == 1);
  CHECK(trace.nodes[0].op == OpType::kEinsum);
}

}  // namespace
}  // namespace lockstep
