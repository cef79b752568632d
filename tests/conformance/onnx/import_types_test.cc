// Models whose values have types that the op set does not compute with: half precision, and rare integers.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/onnx/import.h"
#include "tests/gradients/graph_runner.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep {
namespace {

using Catch::Contains;

// An input of [2] of this element type; `nodes` lead from x to y.
ImportedModel Import(int type, const std::string& nodes) {
  OnnxFile file;
  file.path = "m.onnx";
  file.sha256 = std::string(64, 'a');
  const std::string text = absl::StrCat(
      "ir_version: 8 opset_import { version: 20 } graph { input { name: 'x' type { tensor_type { elem_type: ", type,
      " shape { dim { dim_value: 2 } } } } } ", nodes, " output { name: 'y' } }");
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &file.model));
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  auto model = ImportOnnx(std::move(file), options);
  INFO(model.status().ToString());
  REQUIRE(model.ok());
  return *std::move(model);
}

// The bits of 1.5 and -2 in half precision.
constexpr char kF16Weight[] = "initializer { name: 'w' data_type: 10 dims: 2 int32_data: [15872, 49152] } ";
constexpr char kBf16Weight[] = "initializer { name: 'w' data_type: 16 dims: 2 int32_data: [16320, 49152] } ";

TEST_CASE("import: a model in half precision is held in float32, its parameters too", "[onnx]") {
  const bool bf16 = GENERATE(false, true);
  const int type = bf16 ? 16 : 10;
  const ImportedModel model = Import(
      type, absl::StrCat(bf16 ? kBf16Weight : kF16Weight,
                         "node { op_type: 'Cast' input: 'x' output: 'c' attribute { name: 'to' type: 2 i: ", type,
                         " } } node { op_type: 'Mul' input: ['c', 'w'] output: 'm' } "
                         "node { op_type: 'Cast' input: 'm' output: 'f' attribute { name: 'to' type: 2 i: 1 } } "
                         "node { op_type: 'Neg' input: 'f' output: 'y' }"));

  REQUIRE(model.graph.inputs.size() == 1);
  CHECK(model.graph.inputs[0].dtype == DType::kF32);
  REQUIRE(model.graph.variables.size() == 1);
  CHECK(model.graph.variables[0].kind == VariableKind::kParameter);
  const Tensor& weight = model.initial.at("w");
  CHECK(std::vector<float>(weight.elements<float>().begin(), weight.elements<float>().end()) ==
        std::vector<float>{1.5f, -2.0f});
  CHECK(model.graph.nodes.size() == 2);  // no cast is left
  REQUIRE(model.warnings.size() == 1);
  CHECK_THAT(model.warnings[0],
             Contains(bf16 ? "has values of BF16" : "has values of F16") && Contains("train.precision"));
}

TEST_CASE("import: a model in float32 with a needless cast keeps it, and is not called half", "[onnx]") {
  const ImportedModel model =
      Import(1, "node { op_type: 'Cast' input: 'x' output: 'y' attribute { name: 'to' type: 2 i: 1 } }");

  CHECK(model.warnings.empty());
  REQUIRE(model.graph.nodes.size() == 1);
  CHECK(model.graph.nodes[0].op == OpType::kCast);
}

// The elements of `op` over a and b, in the order of `Result`.
template <typename Result, typename T>
std::vector<Result> Compute(const std::string& op, int type, const std::vector<T>& a, const std::vector<T>& b) {
  ImportedModel model = Import(type, absl::StrCat("input { name: 'b' type { tensor_type { elem_type: ", type,
                                                  " shape { dim { dim_value: 2 } } } } } node { op_type: '", op,
                                                  "' input: ['x', 'b'] output: 'y' }"));
  REQUIRE(InferShapes(&model.graph).ok());
  const auto runner = *GraphRunner::Make(model.graph);
  std::copy(a.begin(), a.end(), runner->value("x").template elements<T>().begin());
  std::copy(b.begin(), b.end(), runner->value("b").template elements<T>().begin());
  REQUIRE(runner->Run().ok());
  const auto results = runner->value("y").template elements<Result>();
  return std::vector<Result>(results.begin(), results.end());
}

TEST_CASE("import: a value that is quantised elsewhere than at its reader is told to have no gradient", "[onnx]") {
  const std::string scale = "initializer { name: 's' data_type: 1 dims: 1 float_data: 0.5 } ";
  const std::string quantise = "node { op_type: 'QuantizeLinear' input: ['x', 's'] output: 'q' } ";
  const ImportedModel straight =
      Import(1, scale + quantise + "node { op_type: 'DequantizeLinear' input: ['q', 's'] output: 'y' }");
  CHECK(straight.warnings.empty());
  REQUIRE(straight.graph.variables.size() == 1);
  CHECK(straight.graph.variables[0].kind == VariableKind::kFrozen);  // a scale is no parameter, and comes home

  const ImportedModel turned =
      Import(1, scale + quantise + "node { op_type: 'Flatten' input: 'q' output: 't' } " +
                    "node { op_type: 'DequantizeLinear' input: ['t', 's'] output: 'y' name: 'back' }");
  REQUIRE(turned.warnings.size() == 1);
  CHECK_THAT(turned.warnings[0], Contains("'back'") && Contains("no gradient"));
}

TEST_CASE("import: rare integers wrap around as their type does", "[onnx]") {
  CHECK(Compute<uint16_t, uint16_t>("Add", 4, {65535, 40000}, {2, 40000}) == std::vector<uint16_t>{1, 14464});
  CHECK(Compute<int16_t, int16_t>("Sub", 5, {-32768, 3}, {1, 5}) == std::vector<int16_t>{32767, -2});
  CHECK(Compute<uint32_t, uint32_t>("Mul", 12, {4294967295, 65537}, {4294967295, 65537}) ==
        std::vector<uint32_t>{1, 131073});
  CHECK(Compute<uint32_t, uint32_t>("Max", 12, {4294967295, 5}, {1, 6}) == std::vector<uint32_t>{4294967295, 6});
  const ImportedModel sum = Import(4, "node { op_type: 'ReduceSum' input: 'x' output: 'y' }");
  CHECK(sum.graph.nodes.size() == 3);  // wide, summed, cut to the low bits
  CHECK(Compute<bool, int16_t>("Less", 5, {-1, 5}, {1, 5}) == std::vector<bool>{true, false});
  CHECK(Compute<bool, uint32_t>("Greater", 12, {4294967295, 0}, {1, 0}) == std::vector<bool>{true, false});
}

}  // namespace
}  // namespace lockstep
