// Values behind which nothing is differentiated and buffers that the model changes, also where they are outputs.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/build/check_trainable.h"
#include "common/graph/graph_editor.h"
#include "common/graph/moved_statistics.h"
#include "common/graph/onnx/import.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep {
namespace {

using Catch::Contains;

constexpr char kDetach[] =
    "metadata_props { key: 'pkg.torch.onnx.fx_node' value: '%d : call_function[target=torch.ops.aten.detach"
    ".default](args = (%h,), kwargs = {})' } ";

// y = x w, n = average + y, which the buffer becomes. `more`: nodes behind them, and outputs.
absl::StatusOr<ImportedModel> Import(const std::string& more, OnnxImportOptions options = {},
                                     const std::string& persistent = "True") {
  OnnxFile file;
  file.path = "m.onnx";
  file.sha256 = std::string(64, 'a');
  const std::string text = absl::StrCat(
      "ir_version: 8 producer_name: 'pytorch' opset_import { version: 17 } graph { "
      "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 2 } } } } } "
      "initializer { name: 'w' data_type: 1 dims: [2, 2] float_data: [1, 2, 3, 4] } "
      "initializer { name: 'v' data_type: 1 dims: [2, 2] float_data: [1, 2, 3, 4] } "
      "initializer { name: 'average' data_type: 1 dims: [2, 2] float_data: [0, 0, 0, 0] } "
      "metadata_props { key: 'pkg.torch.export.ExportedProgram.graph_signature' value: '\\np_w: PARAMETER "
      "target=\\'w\\'\\np_v: PARAMETER target=\\'v\\'\\nb_average: BUFFER target=\\'average\\' persistent=",
      persistent, "\\nn: BUFFER_MUTATION target=\\'average\\'\\n' } ",
      "node { op_type: 'MatMul' input: ['x', 'w'] output: 'h' } "
      "node { op_type: 'Add' input: ['average', 'h'] output: 'n' } ",
      more, "}");
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &file.model));
  options.evaluate = device::EvaluateNode;
  options.batch = 2;
  return ImportOnnx(std::move(file), options);
}

ImportedModel Model(const std::string& more, OnnxImportOptions options = {}, const std::string& persistent = "True") {
  auto model = Import(more, std::move(options), persistent);
  INFO(model.status().ToString());
  REQUIRE(model.ok());
  return *std::move(model);
}

OnnxImportOptions StopAt(const std::string& value) {
  OnnxImportOptions options;
  options.stop_gradient = {value};
  return options;
}

// Whether the values of the graph can be inferred, each given by one node, and the moves lead to the buffers.
void CheckSound(const ImportedModel& model, const std::vector<std::string>& outputs) {
  Graph graph = model.graph;
  BindBatch(&graph, 2);
  const absl::Status inferred = InferShapes(&graph);
  INFO(inferred.ToString());
  CHECK(inferred.ok());
  CHECK(model.graph.outputs == outputs);
  CHECK(MovedStatistics(model.graph) == std::vector<std::string>{"average"});
  CHECK(model.graph.values.empty());
}

TEST_CASE("import: a buffer's new value may be an output, under its name and others", "[onnx]") {
  CheckSound(Model("node { op_type: 'Relu' input: 'h' output: 'y' } output { name: 'y' } output { name: 'n' } "),
             {"y", "n"});
  CheckSound(
      Model("node { op_type: 'Relu' input: 'n' output: 'y' } node { op_type: 'Identity' input: 'n' output: 'o' } "
            "output { name: 'o' } output { name: 'n' } output { name: 'y' } "),
      {"o", "n", "y"});
  CheckSound(Model("node { op_type: 'Relu' input: 'h' output: 'y' } output { name: 'n' } output { name: 'n' } "
                   "output { name: 'y' } "),
             {"n", "n.stopped.output", "y"});
}

TEST_CASE("import: a stopped value may be an output", "[onnx]") {
  const ImportedModel model =
      Model("node { op_type: 'Relu' input: 'h' output: 'y' } output { name: 'y' } output { name: 'h' } ", StopAt("h"));

  CheckSound(model, {"y", "h"});
  const auto given = std::find_if(model.graph.nodes.begin(), model.graph.nodes.end(),
                                  [](const Node& node) { return node.outputs[0] == "h"; });
  REQUIRE(given != model.graph.nodes.end());
  CHECK(given->inputs == std::vector<std::string>{"h.stopped"});
}

TEST_CASE("import: a detached value that a buffer becomes may be an output", "[onnx]") {
  CheckSound(Model(absl::StrCat("node { op_type: 'Identity' input: 'n' output: 'd' ", kDetach,
                                "} node { op_type: 'Add' input: ['d', 'h'] output: 'y' } output { name: 'd' } "
                                "output { name: 'y' } ")),
             {"d", "y"});
}

TEST_CASE("import: gradients stop at every part of a sequence", "[onnx]") {
  const std::string split =
      "node { op_type: 'SplitToSequence' input: 'h' output: 's' } "
      "initializer { name: 'i' data_type: 7 int64_data: 0 } "
      "node { op_type: 'SequenceAt' input: ['s', 'i'] output: 'p' } "
      "node { op_type: 'Add' input: ['p', 'n'] output: 'y' } output { name: 'y' } ";

  const ImportedModel model = Model(split, StopAt("s"));

  CHECK(std::count(model.notes.stops.begin(), model.notes.stops.end(), "s") == 1);
  CHECK_THAT(std::string(CheckTrainable(model.graph, 2).message()), Contains("reaches a parameter"));
  CHECK(CheckTrainable(Model(split).graph, 2).ok());
}

TEST_CASE("import: a value that is not computed cannot be stopped at", "[onnx]") {
  const auto model = Import(
      "initializer { name: 's' data_type: 1 dims: 2 float_data: [1, 1] } "
      "initializer { name: 'm' data_type: 1 dims: 2 float_data: [0, 0] } "
      "initializer { name: 'u' data_type: 1 dims: 2 float_data: [1, 1] } "
      "node { op_type: 'BatchNormalization' input: ['h', 's', 'm0', 'm', 'u'] output: ['y', 'moved'] "
      "attribute { name: 'training_mode' type: 2 i: 1 } } "
      "initializer { name: 'm0' data_type: 1 dims: 2 float_data: [0, 0] } output { name: 'y' } ",
      StopAt("moved"));

  REQUIRE_FALSE(model.ok());
  CHECK_THAT(std::string(model.status().message()),
             Contains("'moved' is not computed here") && Contains("model.stop_gradient"));
}

TEST_CASE("import: a buffer that changes and is not persistent becomes part of the state, with a warning", "[onnx]") {
  const std::string more = "node { op_type: 'Relu' input: 'n' output: 'y' } output { name: 'y' } ";

  const auto about = [&](const ImportedModel& model) {
    std::string warnings;
    for (const std::string& warning : model.warnings) {
      if (warning.find("persistent") != std::string::npos) warnings += warning;
    }
    return warnings;
  };

  CHECK(about(Model(more)).empty());
  CHECK_THAT(about(Model(more, {}, "False")),
             Contains("'average', which is persistent=False") && Contains("strict=False"));
}

TEST_CASE("import: parameters behind stops are kept where a model's training is checked", "[onnx]") {
  const ImportedModel model = Model(
      "node { op_type: 'MatMul' input: ['x', 'v'] output: 'g' } node { op_type: 'Add' input: ['g', 'h'] output: 'y' } "
      "output { name: 'y' } ",
      StopAt("h"));

  CHECK(model.graph.variables.size() == 3);
  CHECK(CheckTrainable(model.graph, 2).ok());
}

TEST_CASE("import: a model with weights of float64 is refused where its training is checked, by name", "[onnx]") {
  Graph graph = Model("node { op_type: 'Add' input: ['h', 'n'] output: 'y' } output { name: 'y' } ").graph;
  REQUIRE(CheckVariableTypes(graph).ok());
  graph.variables[1].dtype = DType::kF64;

  const absl::Status refused = CheckVariableTypes(graph);

  CHECK(absl::IsInvalidArgument(refused));
  CHECK_THAT(std::string(refused.message()),
             Contains("'" + graph.variables[1].name + "' is of type F64") && Contains("model.float()"));
  CHECK(CheckTrainable(graph, 2) == refused);
}

}  // namespace
}  // namespace lockstep
