// Files that a reader trips over: names that collide with made-up ones, attributes of the wrong kind, sizes that no
// element backs.
#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/onnx/import.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep {
namespace {

using Catch::Contains;

constexpr char kX[] =
    "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } "
    "dim { dim_value: 3 } } } } }";

absl::StatusOr<ImportedModel> Import(const std::string& graph, int opset = 17) {
  OnnxFile file;
  file.path = "m.onnx";
  file.sha256 = std::string(64, 'a');
  const std::string text = absl::StrCat("ir_version: 8 opset_import { version: ", opset, " } graph { ", graph, "}");
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &file.model));
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  options.trainable = false;
  return ImportOnnx(std::move(file), options);
}

std::string Refusal(const std::string& graph, int opset = 17) {
  const auto model = Import(graph, opset);
  REQUIRE_FALSE(model.ok());
  return std::string(model.status().message());
}

std::string Node(const std::string& op, const std::string& inputs, const std::string& output,
                 const std::string& attributes = "") {
  std::string text = absl::StrCat("node { op_type: '", op, "' output: '", output, "' ");
  for (const char name : inputs) absl::StrAppend(&text, "input: '", std::string(1, name), "' ");
  return absl::StrCat(text, attributes, " } ");
}

std::string Ints(const std::string& name, const std::string& dims, const std::string& values) {
  return absl::StrCat("initializer { name: '", name, "' data_type: 7 ", dims, " ", values, " } ");
}

const std::string kY = "output { name: 'y' } ";

TEST_CASE("import: a name that the file has is not taken for a value in between", "[onnx]") {
  // Max of three goes over a value in between; the file's own "m.1" is another thing.
  const std::string graph =
      absl::StrCat(kX, kY, Node("Max", "xxx", "m"),
                   "node { op_type: 'Add' input: 'm' input: 'm.1' output: 'y' } "
                   "initializer { name: 'm.1' data_type: 1 dims: 3 float_data: 1 float_data: 2 float_data: 3 } ");

  const auto model = Import(graph);

  REQUIRE(model.ok());
  REQUIRE(model->graph.constants.size() == 1);
  CHECK(model->graph.constants[0].name == "m.1");
  CHECK(model->graph.nodes.back().inputs == std::vector<std::string>{"m", "m.1"});
}

TEST_CASE("import: one value may be several outputs, under each name", "[onnx]") {
  const std::string two = absl::StrCat(kX, "output { name: 'y' } output { name: 'z' } output { name: 'a' } ",
                                       Node("Relu", "x", "a"), Node("Identity", "a", "y"), Node("Identity", "a", "z"));

  const auto model = Import(two);

  REQUIRE(model.ok());
  CHECK(model->graph.outputs == std::vector<std::string>{"y", "z", "a"});
  for (const std::string& output : model->graph.outputs) {
    int given = 0;
    for (const auto& node : model->graph.nodes) given += node.outputs[0] == output ? 1 : 0;
    CHECK(given == 1);
  }
}

TEST_CASE("import: a sequence of one part is that part, parts of one size are many", "[onnx]") {
  const std::string split =
      absl::StrCat(kX, kY, Node("SplitToSequence", "xs", "q", "attribute { name: 'axis' type: 2 i: 0 }"),
                   Node("SequenceAt", "qi", "y"), Ints("i", "", "int64_data: 0"));

  const auto whole = Import(absl::StrCat(split, Ints("s", "dims: 1", "int64_data: 4")));
  REQUIRE(whole.ok());
  CHECK(whole->graph.nodes[0].outputs.size() == 1);
  const auto twos = Import(absl::StrCat(split, Ints("s", "", "int64_data: 2")));
  REQUIRE(twos.ok());
  CHECK(twos->graph.nodes[0].outputs.size() == 2);
}

TEST_CASE("import: what has no memory behind it takes none", "[onnx]") {
  const std::string add = absl::StrCat(kX, kY, Node("Add", "xw", "y"));
  CHECK_THAT(Refusal(absl::StrCat(add, "initializer { name: 'w' data_type: 1 dims: 1099511627776 float_data: 1 }")),
             Contains("tensor 'w'") && Contains("has 1 elements"));
  CHECK_THAT(Refusal(absl::StrCat(add, "initializer { name: 'w' data_type: 1 dims: 0 float_data: [1, 2] }")),
             Contains("tensor 'w'") && Contains("has 2 elements"));
  CHECK_THAT(Refusal(absl::StrCat("input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: "
                                  "1099511627776 } } } } } ",
                                  kY, Node("SplitToSequence", "x", "q"), Node("SequenceAt", "qi", "y"),
                                  Ints("i", "", "int64_data: 0"))),
             Contains("more than 4096 parts"));
}

TEST_CASE("import: attributes of the wrong kind and missing inputs are refused", "[onnx]") {
  const std::string image =
      "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } dim { dim_value: 2 } "
      "dim { dim_value: 4 } dim { dim_value: 4 } } } } } ";
  for (const char* attribute : {"scale", "softcap"}) {
    CHECK_THAT(Refusal(absl::StrCat(image, kY,
                                    Node("Attention", "xxx", "y",
                                         absl::StrCat("attribute { name: '", attribute, "' type: 2 i: 2 }"))),
                       23),
               Contains(absl::StrCat("attribute '", attribute, "'")));
  }
  CHECK_THAT(Refusal(absl::StrCat(image, kY, Node("MaxPool", "", "y"))), Contains("has no input"));
  const std::string same =
      "attribute { name: 'auto_pad' type: 3 s: 'SAME_UPPER' } "
      "attribute { name: 'kernel_shape' type: 7 ints: 2 ints: 2 } ";
  for (const char* stride : {"0", "-1", "9223372036854775807"}) {
    CHECK_THAT(Refusal(absl::StrCat(
                   image, kY,
                   Node("MaxPool", "x", "y",
                        absl::StrCat(same, "attribute { name: 'strides' type: 7 ints: ", stride, " ints: 1 }")))),
               Contains("strides"));
  }
  CHECK_THAT(Refusal(absl::StrCat(image, image, kY, Node("Relu", "x", "y"))), Contains("listed twice"));
}

TEST_CASE("import: a range of fractions does not drift, one of large integers does not overflow", "[onnx]") {
  const auto range_of = [](const std::string& type, const std::string& a, const std::string& b, const std::string& c) {
    const auto number = [&](const char* name, const std::string& value) {
      return absl::StrCat("initializer { name: '", name, "' ", type, value, " } ");
    };
    const auto model = Import(absl::StrCat(kX, kY, "output { name: 'r' } ", Node("Relu", "x", "y"),
                                           Node("Range", "abc", "r"), number("a", a), number("b", b), number("c", c)));
    REQUIRE(model.ok());
    REQUIRE(model->graph.constants.size() == 1);
    return model->graph.constants[0].value;
  };

  const auto fractions = range_of("data_type: 1 float_data: ", "0", "1000", "0.1");
  CHECK(fractions->elements<float>()[9000] == static_cast<float>(9000 * static_cast<double>(0.1f)));
  const auto integers = range_of("data_type: 7 int64_data: ", "0", "9223372036854775807", "4611686018427387904");
  REQUIRE(integers->num_elements() == 2);
  CHECK(integers->elements<int64_t>()[1] == 4611686018427387904);
}

TEST_CASE("import: before opset 21 a group normalisation may scale by group, which is by channel here", "[onnx]") {
  const auto of = [](int64_t count) {
    std::string numbers;
    for (int64_t i = 1; i <= count; ++i) absl::StrAppend(&numbers, " float_data: ", i);
    return absl::StrCat("initializer { name: 's' data_type: 1 dims: ", count, numbers, " } ");
  };
  const std::string graph = absl::StrCat(
      "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 6 } "
      "dim { dim_value: 5 } } } } } ",
      kY, Node("GroupNormalization", "xss", "y", "attribute { name: 'num_groups' i: 3 type: 2 }"));

  const auto by_group = Import(graph + of(3), 18);
  const auto by_channel = Import(graph + of(6), 18);

  REQUIRE(by_group.ok());
  const std::shared_ptr<const Tensor> scale = by_group->graph.constants[0].value;
  CHECK(scale->shape() == Shape{6});
  const std::vector<float> expected = {1, 1, 2, 2, 3, 3};
  CHECK(std::equal(expected.begin(), expected.end(), scale->elements<float>().begin()));
  CHECK(by_channel.ok());
  CHECK_THAT(Refusal(graph + of(3), 21), Contains("scale"));
}

TEST_CASE("import: a resize by a fraction makes as many elements as elsewhere", "[onnx]") {
  const auto model = Import(absl::StrCat(
      "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } dim { dim_value: 1 } "
      "dim { dim_value: 10 } } } } } ",
      kY,
      "node { op_type: 'Resize' input: 'x' input: '' input: 's' output: 'y' } "
      "initializer { name: 's' data_type: 1 dims: 3 float_data: 1 float_data: 1 float_data: 0.7 } "));
  REQUIRE(model.ok());
  Graph graph = model->graph;
  REQUIRE(InferShapes(&graph).ok());
  CHECK(graph.values.at("y").shape == Shape{1, 1, 7});
}

}  // namespace
}  // namespace lockstep
