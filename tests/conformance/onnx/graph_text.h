// Models of ONNX written as the text of protobuf, in parts; imported, run, and their gradients held to float64
// differences.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_CONFORMANCE_ONNX_GRAPH_TEXT_H_
#define LOCKSTEP_TESTS_CONFORMANCE_ONNX_GRAPH_TEXT_H_

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/onnx/import.h"
#include "tests/gradients/gradient_check.h"
#include "tests/gradients/graph_runner.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep::graph_text {

inline absl::StatusOr<ImportedModel> Import(const std::string& graph, bool trainable = false,
                                            const std::string& functions = "") {
  OnnxFile file;
  file.path = "m.onnx";
  file.sha256 = std::string(64, 'a');
  const std::string text =
      absl::StrCat("ir_version: 8 opset_import { version: 17 } ", functions, " graph { ", graph, "}");
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &file.model));
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  options.trainable = trainable;
  return ImportOnnx(std::move(file), options);
}

inline std::string Refusal(const std::string& graph, bool trainable = false) {
  const auto model = Import(graph, trainable);
  REQUIRE_FALSE(model.ok());
  return std::string(model.status().message());
}

// `type` 11: F64, 9: BOOL, 1: F32.
inline std::string Input(const std::string& name, int type, const std::string& dims) {
  return absl::StrCat("input { name: '", name, "' type { tensor_type { elem_type: ", type, " shape { ", dims,
                      " } } } } ");
}

inline std::string Op(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                      const std::string& attributes = "") {
  std::string text = absl::StrCat("node { op_type: '", op, "' output: '", output, "' ");
  for (const std::string& name : inputs) absl::StrAppend(&text, "input: '", name, "' ");
  return absl::StrCat(text, attributes, " } ");
}

inline std::string Gives(const std::string& output) { return absl::StrCat("output { name: '", output, "' } "); }

// Runs the imported graph with these inputs, F64 but for bools.
inline std::vector<double> Run(const Graph& graph,
                               const std::vector<std::pair<std::string, std::vector<double>>>& inputs) {
  const auto runner = GraphRunner::Make(graph);
  REQUIRE(runner.ok());
  for (const auto& [name, values] : inputs) {
    Tensor& tensor = (*runner)->value(name);
    for (size_t i = 0; i < values.size(); ++i) {
      if (tensor.dtype() == DType::kBool) {
        tensor.elements<bool>()[i] = values[i] != 0;
      } else {
        tensor.elements<double>()[i] = values[i];
      }
    }
  }
  REQUIRE((*runner)->Run().ok());
  const absl::Span<const double> result = (*runner)->value(graph.outputs[0]).elements<double>();
  return {result.begin(), result.end()};
}

inline Graph Inferred(const std::string& text) {
  const auto model = Import(text);
  INFO(model.status());
  REQUIRE(model.ok());
  Graph graph = model->graph;
  REQUIRE(InferShapes(&graph).ok());
  return graph;
}

// Of an imported graph between its F64 inputs and its outputs, on one side of the condition `c`.
inline std::string CheckSide(const std::string& text,
                             const std::vector<std::pair<std::string, std::vector<double>>>& values, bool side) {
  const auto model = Import(text);
  INFO(model.status());
  REQUIRE(model.ok());
  GradientCase test;
  test.graph = model->graph;
  test.outputs = model->graph.outputs;
  for (const GraphInput& input : test.graph.inputs) {
    if (input.name == "c") {
      test.inputs.push_back(Tensor::Of<bool>({}, {side}));
      continue;
    }
    for (const auto& [name, elements] : values) {
      if (name == input.name) test.inputs.push_back(Tensor::Of<double>(input.shape, elements));
    }
    if (input.name != "e") test.targets.push_back(input.name);  // it decides, and moves nothing
  }
  return CheckGradients(std::move(test), 3);
}

}  // namespace lockstep::graph_text

#endif  // LOCKSTEP_TESTS_CONFORMANCE_ONNX_GRAPH_TEXT_H_
