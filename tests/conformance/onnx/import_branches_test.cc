// If: both branches become nodes of the graph, and a choice by the condition lies around them. What they compute and
// their gradients are held to float64 differences, on either side of the condition.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/conformance/onnx/graph_text.h"

namespace lockstep {
namespace {

using Catch::Contains;
using namespace graph_text;

std::string If(const std::string& condition, const std::string& output, const std::string& then,
               const std::string& otherwise) {
  return Op("If", {condition}, output,
            absl::StrCat("attribute { name: 'then_branch' type: 5 g { ", then, " } } attribute { name: 'else_branch' ",
                         "type: 5 g { ", otherwise, " } }"));
}

const std::string kThree = "dim { dim_value: 3 }";
const std::string kInputs = Input("x", 11, kThree) + Input("w", 11, kThree) + Input("c", 9, "");
// x where the condition holds is multiplied by w, else what comes of it is not finite in the other branch's gradient.
const std::string kThen = Op("Mul", {"x", "w"}, "product") + Gives("product");
const std::string kElse = Op("Log", {"x"}, "log") + Op("Add", {"log", "w"}, "sum") + Gives("sum");

TEST_CASE("if: the branch that the condition names gives the result", "[onnx]") {
  const Graph graph = Inferred(kInputs + If("c", "y", kThen, kElse) + Gives("y"));

  CHECK(Run(graph, {{"x", {1, 2, 3}}, {"w", {4, 5, 6}}, {"c", {1}}}) == std::vector<double>{4, 10, 18});
  const std::vector<double> otherwise = Run(graph, {{"x", {1, 2, 3}}, {"w", {4, 5, 6}}, {"c", {0}}});
  CHECK(otherwise[1] == Approx(std::log(2.0) + 5));
}

TEST_CASE("if: gradients go through the branch that is taken alone", "[onnx]") {
  const std::string text = kInputs + If("c", "y", kThen, kElse) + Gives("y");

  CHECK(CheckSide(text, {{"x", {1, 2, 3}}, {"w", {4, 5, 6}}}, true) == "");
  CHECK(CheckSide(text, {{"x", {1, 2, 3}}, {"w", {4, 5, 6}}}, false) == "");
  // The derivative of the logarithm at 0 is infinite: what comes of it must not be multiplied by 0, it must not arrive.
  CHECK(CheckSide(text, {{"x", {0, -1, 0}}, {"w", {4, 5, 6}}}, true) == "");
}

TEST_CASE("if: values of branches and of what is around them may have the same names", "[onnx]") {
  const std::string then = Op("Mul", {"x", "x"}, "t") + Op("Add", {"t", "s"}, "y") + Gives("y");
  const std::string otherwise = Op("Add", {"x", "s"}, "t") + Gives("t");
  const Graph graph = Inferred(kInputs + Op("Mul", {"x", "w"}, "s") + If("c", "y", then, otherwise) + Gives("y"));

  CHECK(Run(graph, {{"x", {1, 2, 3}}, {"w", {1, 1, 1}}, {"c", {1}}}) == std::vector<double>{2, 6, 12});
  CHECK(Run(graph, {{"x", {1, 2, 3}}, {"w", {1, 1, 1}}, {"c", {0}}}) == std::vector<double>{2, 4, 6});
}

TEST_CASE("if: one within another reads what lies outside of both", "[onnx]") {
  const std::string inner = If("d", "z", Op("Mul", {"t", "w"}, "u") + Gives("u"), Op("Exp", {"x"}, "v") + Gives("v"));
  const std::string then = Op("Sin", {"x"}, "t") + inner + Gives("z");
  const std::string text =
      kInputs + Input("e", 11, kThree) + Op("ReduceSum", {"e"}, "sum", "attribute { name: 'keepdims' i: 0 type: 2 }") +
      Op("Greater", {"sum", "zero"}, "d") + "initializer { name: 'zero' data_type: 11 double_data: 0 } " +
      If("c", "y", then, Op("Cos", {"w"}, "u") + Gives("u")) + Gives("y");
  for (const double e : {-1.0, 1.0}) {
    for (const bool side : {true, false}) {
      CHECK(CheckSide(text, {{"x", {0.1, 0.2, 0.3}}, {"w", {4, 5, 6}}, {"e", {e, e, e}}}, side) == "");
      const std::vector<double> y =
          Run(Inferred(text), {{"x", {0.1, 0.2, 0.3}}, {"w", {4, 5, 6}}, {"e", {e, e, e}}, {"c", {side ? 1.0 : 0.0}}});
      CHECK(y[0] == Approx(!side ? std::cos(4.0) : e > 0 ? std::sin(0.1) * 4 : std::exp(0.1)));
    }
  }
}

TEST_CASE("if: one in a function reads the function's values", "[onnx]") {
  const std::string function =
      "functions { domain: 'mine' name: 'F' input: 'a' input: 'p' output: 'r' opset_import { version: 17 } " +
      If("p", "r", Op("Neg", {"a"}, "n") + Gives("n"), Op("Abs", {"a"}, "m") + Gives("m")) + "} ";
  const auto model =
      Import(kInputs + "node { op_type: 'F' domain: 'mine' name: 'f' input: 'x' input: 'c' output: 'y' } " + Gives("y"),
             false, function);
  INFO(model.status());
  REQUIRE(model.ok());
  Graph graph = model->graph;
  REQUIRE(InferShapes(&graph).ok());

  CHECK(Run(graph, {{"x", {-1, 2, 3}}, {"c", {1}}}) == std::vector<double>{1, -2, -3});
  CHECK(Run(graph, {{"x", {-1, 2, 3}}, {"c", {0}}}) == std::vector<double>{1, 2, 3});
}

TEST_CASE("if: of a condition that is known only the branch that is taken is read", "[onnx]") {
  // The other branch could not even be: it takes away a dimension that has three elements.
  const std::string bad = Op("Squeeze", {"x"}, "s", "") + Op("Nonsense", {"s"}, "t") + Gives("t");
  const std::string stated = "initializer { name: 'k' data_type: 9 int32_data: 1 } ";
  const std::string computed = Op("Shape", {"x"}, "shape") + Op("Gather", {"shape", "first"}, "n") +
                               "initializer { name: 'first' data_type: 7 int64_data: 0 } " +
                               Op("Equal", {"n", "three"}, "k") +
                               "initializer { name: 'three' data_type: 7 int64_data: 3 } ";
  for (const std::string& condition : {stated, computed}) {
    const Graph graph = Inferred(kInputs + condition + If("k", "y", kThen, bad) + Gives("y"));
    CHECK(graph.nodes.size() == 1);
    CHECK(Run(graph, {{"x", {1, 2, 3}}, {"w", {4, 5, 6}}}) == std::vector<double>{4, 10, 18});
  }
  const std::string inner = If("c", "z", kThen, kElse);
  CHECK(Inferred(kInputs + stated + If("k", "y", inner + Gives("z"), bad) + Gives("y")).outputs.size() == 1);
}

TEST_CASE("if: a parameter that only a branch holds keeps its name and is trained", "[onnx]") {
  const std::string inputs = Input("x", 1, kThree) + Input("c", 9, "");
  const std::string held =
      "initializer { name: 'inner.weight' data_type: 1 dims: 3 float_data: 1 float_data: 2 float_data: 3 } ";
  const auto model = Import(
      inputs +
          If("c", "y", held + Op("Mul", {"x", "inner.weight"}, "t") + Gives("t"), Op("Neg", {"x"}, "t") + Gives("t")) +
          Gives("y"),
      /*trainable=*/true);
  INFO(model.status());
  REQUIRE(model.ok());
  REQUIRE(model->graph.variables.size() == 1);
  CHECK(model->graph.variables[0].name == "inner.weight");
  CHECK(model->graph.variables[0].kind == VariableKind::kParameter);
}

TEST_CASE("if: what cannot be is refused with its place and a reason", "[onnx]") {
  const std::string shorter = Op("ReduceSum", {"x"}, "s") + Gives("s");
  CHECK_THAT(Refusal(kInputs + If("c", "y", kThen, shorter) + Gives("y")),
             Contains("one branch gives F64 [3], the other one F64 [1]"));
  CHECK_THAT(Refusal(kInputs + If("x", "y", kThen, kElse) + Gives("y")), Contains("the condition"));
  CHECK_THAT(Refusal(kInputs + Op("If", {"c"}, "y") + Gives("y")), Contains("needs a then_branch"));
  CHECK_THAT(Refusal(kInputs + If("c", "y", kThen + Gives("product"), kElse) + Gives("y")),
             Contains("other numbers of outputs"));
  CHECK_THAT(Refusal(kInputs + If("c", "y", Op("Mul", {"x", "nothing"}, "t") + Gives("t"), kElse) + Gives("y")),
             Contains("'nothing'"));
  CHECK_THAT(
      Refusal(kInputs + "node { op_type: 'BranchInput' domain: 'lockstep.branch' input: 'c' input: 'x' output: 'y' } " +
              Gives("y")),
      Contains("no file may use the domain"));
}

TEST_CASE("if: a batch normalisation in a branch is refused for training", "[onnx]") {
  const std::string inputs =
      Input("x", 1, "dim { dim_value: 2 } dim { dim_value: 1 } dim { dim_value: 4 }") + Input("c", 9, "");
  std::string statistics;
  for (const std::string name : {"scale", "bias", "mean", "var"}) {
    absl::StrAppend(&statistics, "initializer { name: '", name, "' data_type: 1 dims: 1 float_data: 1 } ");
  }
  const std::string text =
      inputs + statistics +
      If("c", "y", Op("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, "t") + Gives("t"),
         Op("Neg", {"x"}, "t") + Gives("t")) +
      Gives("y");

  CHECK_THAT(Refusal(text, /*trainable=*/true), Contains("stands in a branch of an If"));
  CHECK(Import(text).ok());
}

}  // namespace
}  // namespace lockstep
