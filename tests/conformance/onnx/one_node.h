// Imports and runs a model of one ONNX node, for ops that are imported as several of ours.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_CONFORMANCE_ONNX_ONE_NODE_H_
#define LOCKSTEP_TESTS_CONFORMANCE_ONNX_ONE_NODE_H_

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/onnx/import.h"
#include "common/graph/ops/onnx_dtype.h"
#include "tests/gradients/graph_runner.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep {

// A model of one node, whose inputs and outputs are named by position.
class OneNode {
 public:
  explicit OneNode(const std::string& op, int outputs = 1) {
    file_.path = "m.onnx";
    file_.sha256 = std::string(64, 'a');
    file_.model.set_ir_version(10);
    file_.model.add_opset_import()->set_version(25);
    node_ = file_.model.mutable_graph()->add_node();
    node_->set_op_type(op);
    for (int i = 0; i < outputs; ++i) Output(absl::StrCat("y", i));
  }

  void Output(const std::string& name) {
    node_->add_output(name);
    if (!name.empty()) file_.model.mutable_graph()->add_output()->set_name(name);
  }
  // Adds an input; omitted if `value` is null.
  void Input(const Tensor* value) {
    const std::string name = value == nullptr ? "" : absl::StrCat("x", node_->input_size());
    node_->add_input(name);
    if (value == nullptr) return;
    onnx::ValueInfoProto* input = file_.model.mutable_graph()->add_input();
    input->set_name(name);
    auto* type = input->mutable_type()->mutable_tensor_type();
    type->set_elem_type(static_cast<int>(OnnxNumber(value->dtype())));
    for (const int64_t dim : value->shape()) type->mutable_shape()->add_dim()->set_dim_value(dim);
    values_.emplace(name, value->Clone());
  }
  // Adds an input whose value is part of the model.
  void Known(const Tensor& value) {
    const std::string name = absl::StrCat("x", node_->input_size());
    node_->add_input(name);
    onnx::TensorProto* initializer = file_.model.mutable_graph()->add_initializer();
    initializer->set_name(name);
    initializer->set_data_type(static_cast<int>(OnnxNumber(value.dtype())));
    for (const int64_t dim : value.shape()) initializer->add_dims(dim);
    initializer->set_raw_data(value.data(), value.byte_size());
  }
  void Set(const std::string& name, int64_t value) {
    onnx::AttributeProto* attribute = node_->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  void SetFloat(const std::string& name, double value) {
    onnx::AttributeProto* attribute = node_->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::FLOAT);
    attribute->set_f(static_cast<float>(value));
  }
  void SetInts(const std::string& name, const std::vector<int64_t>& values) {
    onnx::AttributeProto* attribute = node_->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : values) attribute->add_ints(value);
  }
  void SetString(const std::string& name, const std::string& value) {
    onnx::AttributeProto* attribute = node_->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::STRING);
    attribute->set_s(value);
  }

  absl::StatusOr<ImportedModel> Import(bool trainable = false) const {
    OnnxImportOptions options;
    options.evaluate = device::EvaluateNode;
    options.trainable = trainable;
    return ImportOnnx(file_, options);
  }

  // Runs the model and returns the elements of every output.
  std::map<std::string, std::vector<double>> Run() const {
    const auto model = Import();
    INFO(model.status().ToString());
    REQUIRE(model.ok());
    Graph graph = model->graph;
    REQUIRE(InferShapes(&graph).ok());
    const auto runner = *GraphRunner::Make(graph);
    for (const GraphInput& input : graph.inputs) {
      const Tensor& value = values_.at(input.name);
      std::copy_n(value.data(), value.byte_size(), runner->value(input.name).data());
    }
    REQUIRE(runner->Run().ok());
    std::map<std::string, std::vector<double>> results;
    for (const std::string& output : graph.outputs) {
      const absl::Span<const double> elements = runner->value(output).elements<double>();
      results[output] = {elements.begin(), elements.end()};
    }
    return results;
  }

 private:
  OnnxFile file_;
  onnx::NodeProto* node_;
  std::map<std::string, Tensor> values_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONFORMANCE_ONNX_ONE_NODE_H_
