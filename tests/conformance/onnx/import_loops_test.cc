// Loop and Scan: the graph has all their trips, one behind the other. What they compute and their gradients are held to
// float64 differences, wherever the data end them.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/conformance/onnx/graph_text.h"

namespace lockstep {
namespace {

using Catch::Contains;
using namespace graph_text;

const std::string kThree = "dim { dim_value: 3 }";
const std::string kFour = "dim { dim_value: 4 }";

std::string Takes(const std::string& name) { return absl::StrCat("input { name: '", name, "' } "); }

// A Loop or Scan with further attributes.
std::string Repeat(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs, const std::string& body,
                   const std::string& attributes = "") {
  std::string text = absl::StrCat("node { op_type: '", op, "' name: 'loop' ");
  for (const std::string& name : inputs) absl::StrAppend(&text, "input: '", name, "' ");
  for (const std::string& name : outputs) absl::StrAppend(&text, "output: '", name, "' ");
  return absl::StrCat(text, attributes, "attribute { name: 'body' type: 5 g { ", body, " } } } ");
}

std::string Int(const std::string& name, int value) {
  return absl::StrCat("initializer { name: '", name, "' data_type: 7 int64_data: ", value, " } ");
}

std::string Ints(const std::string& name, const std::vector<int>& values) {
  std::string text = absl::StrCat("attribute { name: '", name, "' type: 7 ");
  for (const int value : values) absl::StrAppend(&text, "ints: ", value, " ");
  return text + "} ";
}

const std::string kScansOne = "attribute { name: 'num_scan_inputs' type: 2 i: 1 } ";
// What a trip is given, and that another one follows.
const std::string kGiven = Takes("i") + Takes("goes") + Takes("h");
const std::string kGoesOn = Op("Identity", {"goes"}, "on") + Gives("on");
// A trip: h * w + x.
const std::string kStep = Op("Mul", {"h", "w"}, "scaled") + Op("Add", {"scaled", "x"}, "next");
const std::string kInputs = Input("x", 11, kThree) + Input("w", 11, kThree);
const std::vector<std::pair<std::string, std::vector<double>>> kValues = {{"x", {1, -2, 3}}, {"w", {0.5, 2, -1}}};

TEST_CASE("loop: a count of trips, with what each adds to a list", "[onnx]") {
  const std::string text =
      kInputs + Int("n", 3) +
      Repeat("Loop", {"n", "", "x"}, {"y", "all"}, kGiven + kStep + kGoesOn + Gives("next") + Gives("next")) +
      Gives("all");

  // 1, 1.5 | 1.75 | 1.875 and so on: h * w + x, from h = x on.
  CHECK(Run(Inferred(text), kValues) == std::vector<double>{1.5, -6, 0, 1.75, -14, 3, 1.875, -30, 0});
  CHECK(CheckSide(text, kValues, true) == "");
}

TEST_CASE("loop: a condition that the file decides ends it", "[onnx]") {
  // Counts in what it carries, as exporters of while_loop do; no count of trips is given.
  const std::string body = Takes("i") + Takes("goes") + Takes("k") + Takes("h") + kStep +
                           Op("Add", {"k", "one"}, "more") + Op("Less", {"more", "end"}, "on") + Gives("on") +
                           Gives("more") + Gives("next");
  const std::string text = kInputs + Int("zero", 0) + Int("one", 1) + Int("end", 4) +
                           Op("Less", {"zero", "end"}, "c0") +
                           Repeat("Loop", {"", "c0", "zero", "x"}, {"k", "y"}, body) + Gives("y");

  CHECK(Run(Inferred(text), kValues) == std::vector<double>{1.9375, -62, 3});
  CHECK(CheckSide(text, kValues, true) == "");
}

// While the sum of e is below i, and at most three times; the logarithm is not finite for what x is in later trips.
std::string UntilDataEnd(const std::string& step) {
  const std::string body = kGiven + step + Op("Cast", {"i"}, "at", "attribute { name: 'to' type: 2 i: 11 } ") +
                           Op("Less", {"at", "until"}, "on") + Gives("on") + Gives("next");
  return kInputs + Input("e", 11, "") + Int("n", 3) + Op("Identity", {"e"}, "until") +
         "initializer { name: 'low' data_type: 11 double_data: -1 } " + Op("Less", {"low", "e"}, "starts") +
         Repeat("Loop", {"n", "starts", "x"}, {"y"}, body) + Gives("y");
}

TEST_CASE("loop: where the data end it, what is carried stays as it is", "[onnx]") {
  const Graph graph = Inferred(UntilDataEnd(kStep));
  const auto run = [&](double e) {
    auto values = kValues;
    values.push_back({"e", {e}});
    return Run(graph, values);
  };

  CHECK(run(-2) == std::vector<double>{1, -2, 3});       // no trip
  CHECK(run(0) == std::vector<double>{1.5, -6, 0});      // one
  CHECK(run(1) == std::vector<double>{1.75, -14, 3});    // two
  CHECK(run(50) == std::vector<double>{1.875, -30, 0});  // all three
}

TEST_CASE("loop: a condition that counts and looks at the data bounds it", "[onnx]") {
  // Goes on while k < 4 and the sum over x of h is below e; each trip doubles h and adds w.
  const std::string axes = "attribute { name: 'keepdims' type: 2 i: 0 } ";
  const std::string body = Takes("i") + Takes("goes") + Takes("k") + Takes("h") + Op("Add", {"h", "h"}, "twice") +
                           Op("Add", {"twice", "w"}, "next") + Op("Add", {"k", "one"}, "more") +
                           Op("Less", {"more", "four"}, "counts") + Op("ReduceSum", {"next"}, "sum", axes) +
                           Op("Less", {"sum", "e"}, "looks") + Op("And", {"counts", "looks"}, "on") + Gives("on") +
                           Gives("more") + Gives("next");
  const std::string text = kInputs + Input("e", 11, "") + Int("zero", 0) + Int("one", 1) + Int("four", 4) +
                           Repeat("Loop", {"", "", "zero", "x"}, {"k", "y"}, body) + Gives("y");
  // The sums are 3, 9, 21 and 45.
  const std::vector<std::pair<std::string, std::vector<double>>> at_one = {{"x", {1, 0, -1}}, {"w", {1, 1, 1}}};
  for (const auto& [e, y] :
       {std::pair(2.0, std::vector<double>{3, 1, -1}), std::pair(4.0, std::vector<double>{7, 3, -1}),
        std::pair(10.0, std::vector<double>{15, 7, -1}), std::pair(99.0, std::vector<double>{31, 15, -1})}) {
    auto values = at_one;
    values.push_back({"e", {e}});
    INFO("e = " << e);
    CHECK(Run(Inferred(text), values) == y);
    CHECK(CheckSide(text, values, true) == "");
  }
}

TEST_CASE("loop: gradients go through the trips that are taken alone", "[onnx]") {
  for (const double e : {-2.0, 0.0, 1.0, 50.0}) {
    auto values = kValues;
    values.push_back({"e", {e}});
    INFO("e = " << e);
    CHECK(CheckSide(UntilDataEnd(kStep), values, true) == "");
  }
  // log(x) - 5: after two trips there is no number, and after one the logarithm of a negative one has no derivative.
  const std::string log = Op("Log", {"h"}, "l") + Op("Mul", {"l", "w"}, "next");
  CHECK(CheckSide(UntilDataEnd(log), {{"x", {2, 1, 3}}, {"w", {1, 2, -3}}, {"e", {0}}}, true) == "");
}

TEST_CASE("scan: one trip per element, forwards or backwards, along any axis", "[onnx]") {
  // h = h * w + x[:, t], and a list of h * h, along the last axis.
  const std::string body = Takes("h") + Takes("x_t") + Op("Mul", {"h", "w"}, "scaled") +
                           Op("Add", {"scaled", "x_t"}, "next") + Op("Mul", {"next", "next"}, "square") +
                           Gives("next") + Gives("square");
  const std::string inputs = Input("x", 11, kThree + kFour) + Input("w", 11, kThree) + Input("h0", 11, kThree);
  const std::vector<std::pair<std::string, std::vector<double>>> values = {
      {"x", {1, 2, 3, 4, 0, 0, 1, 0, -1, 1, -1, 1}}, {"w", {1, 2, 0}}, {"h0", {0, 1, 2}}};
  const std::string axes = kScansOne + Ints("scan_input_axes", {1}) + Ints("scan_output_axes", {-1});
  const std::string forwards =
      inputs + Repeat("Scan", {"h0", "x"}, {"last", "squares"}, body, axes) + Gives("squares") + Gives("last");
  const std::string backwards =
      inputs +
      Repeat("Scan", {"h0", "x"}, {"last", "squares"}, body,
             axes + Ints("scan_input_directions", {1}) + Ints("scan_output_directions", {1})) +
      Gives("squares") + Gives("last");

  CHECK(Run(Inferred(forwards), values) == std::vector<double>{1, 9, 36, 100, 4, 16, 81, 324, 1, 1, 1, 1});
  CHECK(Run(Inferred(backwards), values) == std::vector<double>{100, 81, 49, 16, 400, 100, 25, 4, 1, 1, 1, 1});
  CHECK(CheckSide(forwards, values, true) == "");
  CHECK(CheckSide(backwards, values, true) == "");
}

TEST_CASE("scan: a body without a state, and an input of one element", "[onnx]") {
  const std::string body = Takes("x_t") + Op("Mul", {"x_t", "w"}, "y_t") + Gives("y_t");
  const std::string text = Input("x", 11, "dim { dim_value: 1 } " + kThree) + Input("w", 11, kThree) +
                           Repeat("Scan", {"x"}, {"y"}, body, kScansOne) + Gives("y");

  CHECK(Run(Inferred(text), kValues) == std::vector<double>{0.5, -4, -3});
}

TEST_CASE("loop: one within another, in a branch, and around one", "[onnx]") {
  const std::string inner_body = Takes("j") + Takes("goes2") + Takes("g") + Op("Add", {"g", "h"}, "sum") +
                                 Op("Identity", {"goes2"}, "on2") + Gives("on2") + Gives("sum");
  const std::string branch =
      absl::StrCat(Op("Mul", {"twice", "w"}, "a"), Gives("a"), " } } attribute { name: 'else_branch' type: 5 g { ",
                   Op("Neg", {"twice"}, "b"), Gives("b"));
  const std::string body =
      kGiven + Repeat("Loop", {"two", "", "h"}, {"twice"}, inner_body) +
      Op("If", {"c"}, "next", absl::StrCat("attribute { name: 'then_branch' type: 5 g { ", branch, " } } ")) + kGoesOn +
      Gives("next");
  const std::string loop = Repeat("Loop", {"two", "", "x"}, {"y"}, body);
  const std::string text = kInputs + Input("c", 9, "") + Int("two", 2) + loop + Gives("y");

  auto values = kValues;
  values.push_back({"c", {1}});
  CHECK(Run(Inferred(text), values) == std::vector<double>{9 * 0.25, -72, 27});
  values.back().second = {0};
  CHECK(Run(Inferred(text), values) == std::vector<double>{9, -18, 27});
  CHECK(CheckSide(text, kValues, true) == "");
  CHECK(CheckSide(text, kValues, false) == "");
}

TEST_CASE("loop: parameters in the body are the model's, and each trip draws other numbers", "[onnx]") {
  const std::string held =
      "initializer { name: 'cell.weight' data_type: 1 dims: 3 float_data: 1 float_data: 2 float_data: 3 } "
      "initializer { name: 'ratio' data_type: 1 float_data: 0.5 } "
      "initializer { name: 'train' data_type: 9 int32_data: 1 } ";
  const std::string body = held + kGiven + Op("Mul", {"h", "cell.weight"}, "scaled") +
                           Op("Dropout", {"scaled", "ratio", "train"}, "next") + kGoesOn + Gives("next");
  const auto model =
      Import(Input("x", 1, kThree) + Int("n", 3) + Repeat("Loop", {"n", "", "x"}, {"y"}, body) + Gives("y"), true);
  INFO(model.status());
  REQUIRE(model.ok());

  CHECK(model->notes.loops == std::vector<std::string>{"loop (3 trips)"});
  REQUIRE(model->graph.variables.size() == 1);
  CHECK(model->graph.variables[0].name == "cell.weight");
  std::set<int64_t> streams;
  for (const lockstep::Node& node : model->graph.nodes) {
    if (const auto* drop = std::get_if<DropoutAttributes>(&node.attributes)) streams.insert(drop->stream);
  }
  CHECK(streams.size() == 3);
}

TEST_CASE("loop: all trips share a constant of the body", "[onnx]") {
  const std::string held = "attribute { name: 'value_floats' type: 6 floats: 1 floats: 2 floats: 3 } ";
  const std::string body =
      kGiven + Op("Constant", {}, "k", held) + Op("Mul", {"h", "k"}, "next") + kGoesOn + Gives("next");
  const auto model =
      Import(Input("x", 1, kThree) + Int("n", 5) + Repeat("Loop", {"n", "", "x"}, {"y"}, body) + Gives("y"));
  INFO(model.status());
  REQUIRE(model.ok());

  CHECK(model->graph.nodes.size() == 5);  // the products
  CHECK(model->graph.constants.size() == 1);
}

TEST_CASE("loop: gradients stop in every trip where the file says so", "[onnx]") {
  const std::string detach =
      "node { op_type: 'Identity' input: 'scaled' output: 'stopped' metadata_props { key: "
      "'pkg.torch.onnx.fx_node' value: '%d : call_function[target=torch.ops.aten.detach.default](args = (%s,))' } } ";
  const std::string body = kGiven + Op("Mul", {"h", "weight"}, "scaled") + detach +
                           Op("Add", {"stopped", "x"}, "next") + kGoesOn + Gives("next");
  const auto model = Import(Input("x", 1, kThree) + Int("n", 2) +
                                "initializer { name: 'weight' data_type: 1 dims: 3 float_data: 1 float_data: 2 "
                                "float_data: 3 } " +
                                Repeat("Loop", {"n", "", "x"}, {"y"}, body) + Gives("y"),
                            true);
  INFO(model.status());
  REQUIRE(model.ok());

  int stops = 0;
  for (const lockstep::Node& node : model->graph.nodes) {
    if (node.op == OpType::kIdentity && node.name.find(".stopped") != std::string::npos) ++stops;
  }
  CHECK(stops == 2);
}

TEST_CASE("loop: values around it may be called as those within it are in the graph", "[onnx]") {
  // Two loops of one name, and values that begin with it.
  const std::string body = kGiven + kStep + kGoesOn + Gives("next");
  for (const char* outside : {"loop/running", "loop/h", "loop/next", "loop/given/h", "loop/outside/w", "loop_/x"}) {
    INFO(outside);
    const std::string text =
        kInputs + Int("n", 2) + Op("Add", {"x", "w"}, outside) + Repeat("Loop", {"n", "", outside}, {"y1"}, body) +
        Repeat("Loop", {"n", "", "y1"}, {"y2"}, body) + Op("Mul", {"y2", outside}, "y") + Gives("y");
    // h * w + x, four times, from x + w on; then times that.
    CHECK(Run(Inferred(text), {{"x", {1, 0, 2}}, {"w", {1, 1, 0}}}) == std::vector<double>{12, 1, 4});
  }
}

TEST_CASE("scan: attributes that do not fit are refused", "[onnx]") {
  const std::string body = Takes("h") + Takes("x_t") + Op("Add", {"h", "x_t"}, "next") + Gives("next") + Gives("next");
  const auto refusal = [&](const std::string& attributes) {
    return Refusal(Input("x", 11, kThree + kThree) + Input("h0", 11, kThree) +
                   Repeat("Scan", {"h0", "x"}, {"last", "y"}, body, kScansOne + attributes) + Gives("y"));
  };
  const std::string floats = "attribute { name: 'scan_input_axes' type: 6 floats: 1 } ";
  const std::string single = "attribute { name: 'scan_input_axes' type: 2 i: 1 } ";
  for (const std::string& wrong : {floats, single, Ints("scan_input_axes", {1, 0})}) {
    CHECK_THAT(refusal(wrong), Contains("'scan_input_axes' has to be a list of 1 integers"));
  }
  CHECK_THAT(refusal(Ints("scan_output_directions", {2})), Contains("'scan_output_directions'") && Contains("0 or 1"));
  CHECK_THAT(refusal(Ints("scan_input_axes", {2})), Contains("axis"));
  CHECK_THAT(Refusal(Input("x", 11, kThree + kThree) + Input("h0", 11, "") +
                     Repeat("Scan", {"h0", "x"}, {"last", "y"}, body, kScansOne) + Gives("last")),
             Contains("carries F64 [] into a trip and F64 [3] out of it"));
}

TEST_CASE("loop: what cannot be is refused with its place and a reason", "[onnx]") {
  const std::string body = kGiven + kStep + kGoesOn + Gives("next");
  const auto refusal = [](const std::string& rest) { return Refusal(kInputs + Int("n", 3) + rest + Gives("y")); };
  CHECK_THAT(refusal(Repeat("Loop", {"n", "", "x", "x"}, {"y"}, body)),
             Contains("'loop' (Loop)") && Contains("its body takes 3 values and gives 2; it has to take 4 and give 3"));
  CHECK_THAT(refusal("node { op_type: 'Loop' name: 'loop' output: 'y' } "), Contains("has no body"));
  CHECK_THAT(refusal(Repeat("Loop", {"n", "", "x"}, {"y"},
                            kGiven + Op("Mul", {"h", "nothing"}, "next") + kGoesOn + Gives("next"))),
             Contains("a graph in node 'loop'") && Contains("'nothing'"));
  CHECK_THAT(refusal(Int("many", 5000) + Repeat("Loop", {"many", "", "x"}, {"y"}, body)),
             Contains("more than 4096 trips"));
  CHECK_THAT(refusal(Repeat("Loop", {"n", "x", "x"}, {"y"}, body)), Contains("has to be one bool"));
  CHECK_THAT(refusal(Repeat("Loop", {"x", "", "x"}, {"y"}, body)), Contains("the count of trips"));
  CHECK_THAT(
      refusal("initializer { name: 'f' data_type: 1 float_data: 3 } " + Repeat("Loop", {"f", "", "x"}, {"y"}, body)),
      Contains("(the count of trips) is F32 []; it has to be one I64"));
  CHECK_THAT(refusal(Repeat("Loop", {"n", "", "x"}, {"y"}, body, Ints("unroll", {1}))),
             Contains("'unroll' is not known"));
  CHECK_THAT(refusal(Repeat(
                 "Loop", {"n", "", "x", "x"}, {"y", "y"},
                 Takes("i") + Takes("goes") + Takes("h") + Takes("g") + kStep + kGoesOn + Gives("next") + Gives("g"))),
             Contains("gives 'y', which exists already"));
  // What the first trip computes is not to be seen behind the loop, nor in the next trip.
  CHECK_THAT(refusal(Repeat("Loop", {"n", "", "x"}, {"z"}, body) + Op("Neg", {"loop/scaled"}, "y")),
             Contains("'loop/scaled'"));
}

TEST_CASE("loop: what the data decide must leave shapes as they are", "[onnx]") {
  const std::string until = kInputs + Input("e", 11, "") + Int("n", 3) + Op("Less", {"e", "e"}, "starts");
  const std::string ends = Op("Less", {"e", "e"}, "on") + Gives("on");
  CHECK_THAT(
      Refusal(until + Repeat("Loop", {"", "starts", "x"}, {"y"}, kGiven + kStep + ends + Gives("next")) + Gives("y")),
      Contains("needs a count of trips, or a condition that counts"));
  CHECK_THAT(
      Refusal(until +
              Repeat("Loop", {"n", "starts", "x"}, {"z", "y"}, kGiven + kStep + ends + Gives("next") + Gives("next")) +
              Gives("y")),
      Contains("the shape of its result would"));
  CHECK_THAT(Refusal(until +
                     Repeat("Loop", {"n", "starts", "x"}, {"y"},
                            kGiven + Op("Concat", {"h", "x"}, "next", "attribute { name: 'axis' type: 2 i: 0 } ") +
                                ends + Gives("next")) +
                     Gives("y")),
             Contains("carries F64 [3] into a trip and F64 [6] out of it"));
}

}  // namespace
}  // namespace lockstep
