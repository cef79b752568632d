#include "tests/e2e/small_onnx.h"

#include <google/protobuf/text_format.h>

#include <fstream>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_cat.h"
#include "protos/onnx.pb.h"

namespace lockstep::e2e {
namespace {

constexpr int kInputs = 12;
constexpr int kScores = 4;

std::string Input(const std::string& name, int element_type = 1) {
  return absl::StrCat("input { name: '", name, "' type { tensor_type { elem_type: ", element_type,
                      " shape { dim { dim_param: 'b' } dim { dim_value: ", kInputs, " } } } } }\n");
}

std::string Output(const std::string& name) { return absl::StrCat("output { name: '", name, "' }\n"); }

std::string Node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                 const std::string& attributes = "") {
  std::string text = absl::StrCat("node { op_type: '", op, "' output: '", output, "'");
  for (const std::string& input : inputs) absl::StrAppend(&text, " input: '", input, "'");
  return absl::StrCat(text, " ", attributes, " }\n");
}

// A matrix that takes a sample to its scores.
std::string Weight(const std::string& name, int inputs = kInputs) {
  std::string text = absl::StrCat("initializer { name: '", name, "' data_type: 1 dims: ", inputs, " dims: ", kScores);
  for (int i = 0; i < inputs * kScores; ++i) absl::StrAppend(&text, " float_data: ", 0.02 * (i * 37 % 17 - 8));
  return absl::StrCat(text, " }\n");
}

void WriteModel(const std::string& path, const std::string& graph) {
  onnx::ModelProto model;
  const std::string text = absl::StrCat("ir_version: 8 opset_import { version: 18 } graph {\n", graph, "}");
  if (!google::protobuf::TextFormat::ParseFromString(text, &model)) throw std::runtime_error(text);
  std::ofstream(path, std::ios::binary) << model.SerializeAsString();
}

}  // namespace

void WriteLinear(const std::string& path, const std::string& input) {
  WriteModel(path, Input(input) + Weight("w") + Node("MatMul", {input, "w"}, "y") + Output("y"));
}

void WriteLinearOf(const std::string& path, int element_type) {
  WriteModel(path, Input("x", element_type) + Weight("w") +
                       Node("Cast", {"x"}, "number", "attribute { name: 'to' type: 2 i: 1 }") +
                       Node("MatMul", {"number", "w"}, "y") + Output("y"));
}

void WriteTwoInputs(const std::string& path, const std::string& other) {
  WriteModel(path, Input(other) + Input("x") + Weight("w") + Node("Add", {other, "x"}, "sum") +
                       Node("MatMul", {"sum", "w"}, "y") + Output("y"));
}

void WriteCost(const std::string& path) {
  WriteModel(path, Input("x") + Weight("w") + Node("MatMul", {"x", "w"}, "y") + Node("Mul", {"y", "y"}, "squares") +
                       Node("ReduceMean", {"squares"}, "cost", "attribute { name: 'keepdims' type: 2 i: 0 }") +
                       Output("cost"));
}

void WriteContrast(const std::string& path) {
  const std::string images =
      "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_param: 'b' } dim { dim_value: 1 } "
      "dim { dim_value: 28 } dim { dim_value: 28 } } } } }\n";
  WriteModel(path, images + Weight("w", 28 * 28) + Node("Flatten", {"x"}, "flat") +
                       Node("MatMul", {"flat", "w"}, "scores") + Node("Tanh", {"scores"}, "y") +
                       Node("Transpose", {"y"}, "t") + Node("MatMul", {"y", "t"}, "products") +
                       Node("Constant", {}, "one", "attribute { name: 'value_float' type: 1 f: 1 }") +
                       Node("Sub", {"products", "one"}, "far") + Node("Mul", {"far", "far"}, "squares") +
                       Node("ReduceMean", {"squares"}, "cost", "attribute { name: 'keepdims' type: 2 i: 0 }") +
                       Output("cost") + Output("y"));
}

void WriteByBatch(const std::string& path) {
  WriteModel(path, Input("x") + Weight("w") + Node("MatMul", {"x", "w"}, "sum") + Node("Shape", {"x"}, "shape") +
                       Node("Constant", {}, "first", "attribute { name: 'value_int' type: 2 i: 0 }") +
                       Node("Gather", {"shape", "first"}, "n") +
                       Node("Cast", {"n"}, "count", "attribute { name: 'to' type: 2 i: 1 }") +
                       Node("Div", {"sum", "count"}, "y") + Output("y"));
}

void WriteTwoOutputs(const std::string& path) {
  WriteModel(path, Input("x") + Weight("w") + Weight("v") + Node("MatMul", {"x", "w"}, "y") +
                       Node("MatMul", {"x", "v"}, "z") + Output("y") + Output("z"));
}

void WriteMasked(const std::string& path) {
  WriteModel(path, Input("x") + Weight("w") + Node("Softmax", {"x"}, "shares") + Node("MatMul", {"shares", "w"}, "y") +
                       Output("y"));
}

void WriteNanAware(const std::string& path) {
  WriteModel(path, Input("x") + Weight("w") +
                       Node("Constant", {}, "zero", "attribute { name: 'value_float' type: 1 f: 0 }") +
                       Node("IsNaN", {"x"}, "missing") + Node("Where", {"missing", "zero", "x"}, "known") +
                       Node("MatMul", {"known", "w"}, "y") + Output("y"));
}

}  // namespace lockstep::e2e
