// Small files that ask for more than any machine has: extents whose products no integer holds, axes outside of every
// tensor, functions and products that never end. Each is refused, at once, with what is wrong.
#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/build/check_trainable.h"
#include "common/graph/onnx/import.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep {
namespace {

using Catch::Contains;

constexpr int kFloat = 1;
constexpr int kBool = 9;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
const std::string kY = "output { name: 'y' } ";

std::string Input(const std::string& name, int type, const std::vector<int64_t>& dims) {
  const std::string list = absl::StrJoin(
      dims, " ", [](std::string* out, int64_t dim) { absl::StrAppend(out, "dim { dim_value: ", dim, " }"); });
  return absl::StrCat("input { name: '", name, "' type { tensor_type { elem_type: ", type, " shape { ", list,
                      " } } } } ");
}

std::string Int(const std::string& name, int64_t value) {
  return absl::StrCat("attribute { name: '", name, "' type: 2 i: ", value, " } ");
}

std::string Ints(const std::string& name, const std::vector<int64_t>& values) {
  return absl::StrCat("attribute { name: '", name, "' type: 7 ints: [", absl::StrJoin(values, ", "), "] } ");
}

std::string Text(const std::string& name, const std::string& value) {
  return absl::StrCat("attribute { name: '", name, "' type: 3 s: '", value, "' } ");
}

std::string Node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                 const std::string& attributes = "") {
  return absl::StrCat(
      "node { op_type: '", op, "' output: '", output, "' input: [",
      absl::StrJoin(inputs, ", ",
                    [](std::string* out, const std::string& name) { absl::StrAppend(out, "'", name, "'"); }),
      "] ", attributes, "} ");
}

std::string List(const std::string& name, const std::vector<int64_t>& values) {
  return absl::StrCat("initializer { name: '", name, "' data_type: 7 dims: ", values.size(), " int64_data: [",
                      absl::StrJoin(values, ", "), "] } ");
}

std::string Number(const std::string& name, int64_t value) {
  return absl::StrCat("initializer { name: '", name, "' data_type: 7 int64_data: ", value, " } ");
}

// The message with which a file is refused; `more` stands beside the graph.
std::string Refusal(const std::string& graph, int opset = 17, const std::string& more = "") {
  OnnxFile file;
  file.path = "m.onnx";
  file.sha256 = std::string(64, 'a');
  const std::string text =
      absl::StrCat("ir_version: 8 opset_import { version: ", opset, " } graph { ", graph, kY, "} ", more);
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &file.model));
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  options.trainable = false;
  const auto model = ImportOnnx(std::move(file), options);
  REQUIRE_FALSE(model.ok());
  return std::string(model.status().message());
}

TEST_CASE("import sizes: a causal mask is made only when it fits", "[onnx]") {
  const auto attention = [](int64_t queries, int64_t keys) {
    return absl::StrCat(Input("q", kFloat, {1, 1, queries, 1}), Input("k", kFloat, {1, 1, keys, 1}),
                        Input("v", kFloat, {1, 1, keys, 1}),
                        Node("Attention", {"q", "k", "v"}, "y", Int("is_causal", 1)));
  };

  // The product of the lengths is 1 modulo 2^64.
  CHECK_THAT(Refusal(attention(274177, 67280421310721), 23), Contains("'Attention_0' (Attention)"));
  CHECK_THAT(Refusal(attention(1 << 20, 1 << 20), 23), Contains("makes a constant of 4398046511104 bytes"));
}

TEST_CASE("import sizes: a state of zeros is made only when it fits", "[onnx]") {
  const std::string layer = absl::StrCat(Input("x", kFloat, {1, int64_t{1} << 40, 1}), Input("w", kFloat, {1, 1, 1}),
                                         Input("r", kFloat, {1, 1, 1}), Node("RNN", {"x", "w", "r"}, "y"));

  CHECK_THAT(Refusal(layer), Contains("makes a constant of 4398046511104 bytes"));
}

TEST_CASE("import sizes: gates of a recurrent layer are counted without overflow", "[onnx]") {
  const int64_t wide = int64_t{1} << 62;
  const std::string layer = absl::StrCat(Input("x", kBool, {1, 1, 1}), Input("w", kBool, {1, 4, 1}),
                                         Input("r", kBool, {1, 1, wide}), Node("LSTM", {"x", "w", "r"}, "y"));

  CHECK_THAT(Refusal(layer), Contains("4611686018427387904"));
}

TEST_CASE("import sizes: an axis outside of the tensor is refused, however far", "[onnx]") {
  const std::string pair = absl::StrCat(Input("a", kFloat, {2, 3}), Input("b", kFloat, {3}));

  CHECK_THAT(Refusal(absl::StrCat(pair, Node("Add", {"a", "b"}, "y", Int("broadcast", 1) + Int("axis", kMost))), 6),
             Contains("axis 9223372036854775807"));
  CHECK_THAT(Refusal(absl::StrCat(pair, Node("Add", {"a", "b"}, "y", Int("broadcast", 1) + Int("axis", 3))), 6),
             Contains("axis 3"));
}

TEST_CASE("import sizes: parts of an axis are counted without overflow", "[onnx]") {
  const std::string x = Input("x", kBool, {kMost});
  CHECK_THAT(Refusal(absl::StrCat(x, Node("SplitToSequence", {"x", "s"}, "q"), Number("s", int64_t{1} << 62),
                                  Node("SequenceAt", {"q", "i"}, "y"), Number("i", 7))),
             Contains("7"));
  CHECK_THAT(Refusal(absl::StrCat(x, "node { op_type: 'Split' input: 'x' output: ['y', 'z'] } ")),
             Contains("does not make 2 equal parts"));
}

TEST_CASE("import sizes: the rest of a transposed window is counted without overflow", "[onnx]") {
  const std::string x = absl::StrCat(Input("x", kFloat, {1, 1, 4}), Input("w", kFloat, {1, 1, 3}));
  for (const int64_t more : {kMost, std::numeric_limits<int64_t>::min()}) {
    CHECK_THAT(Refusal(absl::StrCat(x, Node("ConvTranspose", {"x", "w"}, "y",
                                            Ints("output_padding", {more}) + Text("auto_pad", "SAME_UPPER")))),
               Contains("output_padding"));
  }
  // Of no channels every number is a divisor.
  CHECK_THAT(Refusal(absl::StrCat(Input("x", kFloat, {1, 0, 4}), Input("w", kFloat, {0, 4, 3}),
                                  Node("ConvTranspose", {"x", "w"}, "y", Int("group", int64_t{1} << 62)))),
             Contains("group"));
}

TEST_CASE("import sizes: a sum over more products than an integer counts is refused", "[onnx]") {
  std::string graph;
  std::vector<std::string> operands;
  for (const char* name : {"a", "b", "c", "d"}) {
    absl::StrAppend(&graph, Node("ConstantOfShape", {"n"}, name));
    operands.push_back(name);
  }
  const std::string sum =
      absl::StrCat(graph, List("n", {1 << 20}), Node("Einsum", operands, "y", Text("equation", "a,b,c,d->")));

  CHECK_THAT(Refusal(sum), Contains("'a,b,c,d->'"));
}

TEST_CASE("import sizes: constants that take too long to compute are refused", "[onnx]") {
  const std::string square = absl::StrCat(Node("ConstantOfShape", {"n"}, "a"), List("n", {8192, 8192}));

  CHECK_THAT(Refusal(absl::StrCat(square, Node("MatMul", {"a", "a"}, "y"))), Contains("takes too long"));
  CHECK_THAT(Refusal(absl::StrCat(Node("ConstantOfShape", {"n"}, "a"), List("n", {1 << 20}),
                                  Node("Einsum", {"a", "a"}, "y", Text("equation", "i,j->")))),
             Contains("takes too long"));
}

TEST_CASE("import sizes: a tensor of more dimensions than any op walks is refused", "[onnx]") {
  CHECK_THAT(Refusal(absl::StrCat(Node("ConstantOfShape", {"n"}, "a"), List("n", std::vector<int64_t>(40, 1)),
                                  Node("Relu", {"a"}, "y"))),
             Contains("40 dimensions"));
}

// Functions f0 to f31 that each call the next one twice.
std::string Doubling(const std::string& leaf) {
  std::string functions;
  for (int i = 0; i < 31; ++i) {
    const std::string next = absl::StrCat("f", i + 1);
    absl::StrAppend(&functions, "functions { name: 'f", i, "' domain: 'd' input: 'a' output: 'b' ", "node { op_type: '",
                    next, "' domain: 'd' input: 'a' output: 't' } ", "node { op_type: '", next,
                    "' domain: 'd' input: 't' output: 'b' } } ");
  }
  return absl::StrCat(functions, "functions { name: 'f31' domain: 'd' input: 'a' output: 'b' ", leaf, "} ");
}

TEST_CASE("import sizes: functions that call each other twice are not followed to the end", "[onnx]") {
  const std::string call =
      absl::StrCat(Input("x", kFloat, {1}), "node { op_type: 'f0' domain: 'd' input: 'x' output: 'y' } ");

  CHECK_THAT(Refusal(call, 17, Doubling("")), Contains("functions"));
  CHECK_THAT(Refusal(call, 17, Doubling("node { op_type: 'Relu' input: 'a' output: 'b' } ")), Contains("functions"));
}

TEST_CASE("import sizes: functions that are called often are not copied without limit", "[onnx]") {
  // 4,096 calls of a function whose one node carries 1 MiB.
  std::string calls = Input("x", kFloat, {1});
  for (int i = 0; i < 4096; ++i) {
    absl::StrAppend(&calls, "node { op_type: 'f' domain: 'd' input: 'x' output: '", i, "' } ");
  }
  const std::string function = absl::StrCat(
      "functions { name: 'f' domain: 'd' input: 'a' output: 'b' node { op_type: 'Relu' input: 'a' output: 'b' ",
      Text("note", std::string(size_t{1} << 20, 'n')), "} } ");

  CHECK_THAT(Refusal(calls, 17, function), Contains("functions"));
}

std::string Weight(const std::string& name, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::string text =
      absl::StrCat("initializer { name: '", name, "' data_type: 1 dims: [", absl::StrJoin(dims, ", "), "]");
  for (int64_t i = 0; i < count; ++i) text += " float_data: 1";
  return text + " } ";
}

// The message with which a file is read and its training refused.
std::string TrainingRefusal(const std::string& graph) {
  OnnxFile file;
  file.path = "m.onnx";
  file.sha256 = std::string(64, 'a');
  const std::string text = absl::StrCat("ir_version: 8 opset_import { version: 17 } graph { ", graph, kY, "} ");
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &file.model));
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  const auto model = ImportOnnx(std::move(file), options);
  INFO(model.status().ToString());
  REQUIRE(model.ok());
  return std::string(CheckTrainable(model->graph, 1).message());
}

TEST_CASE("import sizes: a gradient of more elements than an integer counts is refused", "[onnx]") {
  const int64_t side = int64_t{1} << 21;
  const std::string product =
      absl::StrCat(Input("x", kFloat, {side, 1, side}), Weight("w", {1}), List("s", {1, side, side}),
                   Node("Expand", {"w", "s"}, "b"), Node("MatMul", {"x", "b"}, "y"));

  CHECK_THAT(TrainingRefusal(product), Contains("(MatMul)") && Contains("elements"));
}

TEST_CASE("import sizes: a gradient of more dimensions than any op walks is refused", "[onnx]") {
  const std::string tile =
      absl::StrCat(Input("x", kFloat, {1}), Weight("w", std::vector<int64_t>(9, 2)),
                   List("r", std::vector<int64_t>(9, 2)), Node("Tile", {"w", "r"}, "t"), Node("Add", {"t", "x"}, "y"));

  CHECK_THAT(TrainingRefusal(tile), Contains("(Tile)") && Contains("18 dimensions"));
}

TEST_CASE("import sizes: a value with the name of one of a gradient is refused", "[onnx]") {
  CHECK_THAT(TrainingRefusal(absl::StrCat(Input("x", kFloat, {2, 2}), Weight("w", {2, 2}),
                                          Node("MatMul", {"x", "w"}, "lockstep.grad.seed"),
                                          Node("Relu", {"lockstep.grad.seed"}, "y"))),
             Contains("lockstep.grad.seed"));
}

TEST_CASE("import sizes: layers that become constants are unrolled no further than others", "[onnx]") {
  std::string layers = absl::StrCat(Node("ConstantOfShape", {"n"}, "x0"), List("n", {4096, 1, 1}),
                                    Node("ConstantOfShape", {"m"}, "w"), List("m", {2, 4, 1}));
  for (int i = 0; i < 16; ++i) {
    absl::StrAppend(&layers, Node("LSTM", {"x0", "w", "w"}, absl::StrCat("l", i),
                                  Int("hidden_size", 1) + Text("direction", "bidirectional")));
  }

  CHECK_THAT(Refusal(absl::StrCat(layers, Node("Relu", {"l0"}, "y"))), Contains("more than 262144 nodes"));
}

}  // namespace
}  // namespace lockstep
