#include "tests/conformance/onnx/node_case.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/attribute_inputs.h"
#include "common/graph/ops/auto_pad.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"
#include "onnx/onnx_pb.h"

namespace lockstep {
namespace {

template <typename Message>
absl::Status Read(const std::string& path, Message* message) {
  std::ifstream file(path, std::ios::binary);
  if (!file || !message->ParseFromIstream(&file)) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ToTensor(const onnx::TensorProto& message) {
  DType dtype = DType::kF32;
  switch (message.data_type()) {
    case onnx::TensorProto::FLOAT:
      break;
    case onnx::TensorProto::DOUBLE:
      dtype = DType::kF64;
      break;
    case onnx::TensorProto::INT32:
      dtype = DType::kI32;
      break;
    case onnx::TensorProto::INT64:
      dtype = DType::kI64;
      break;
    case onnx::TensorProto::INT8:
      dtype = DType::kI8;
      break;
    case onnx::TensorProto::UINT8:
      dtype = DType::kU8;
      break;
    case onnx::TensorProto::BOOL:
      dtype = DType::kBool;
      break;
    default:
      return absl::UnimplementedError("an element type that does not train");
  }
  LS_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, Shape(message.dims().begin(), message.dims().end())));
  if (static_cast<int64_t>(message.raw_data().size()) != tensor.byte_size()) {
    return absl::DataLossError("the tensor's bytes do not fit its shape");
  }
  if (tensor.byte_size() != 0) std::memcpy(tensor.data(), message.raw_data().data(), message.raw_data().size());
  return tensor;
}

absl::StatusOr<std::vector<Tensor>> ReadTensors(const std::string& folder, const char* what, int count) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < count; ++i) {
    onnx::TensorProto message;
    LS_RETURN_IF_ERROR(Read(absl::StrCat(folder, "/test_data_set_0/", what, "_", i, ".pb"), &message));
    LS_ASSIGN_OR_RETURN(Tensor tensor, ToTensor(message));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

absl::StatusOr<RawAttributes> ToRaw(const onnx::NodeProto& node) {
  RawAttributes raw;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    switch (attribute.type()) {
      case onnx::AttributeProto::INT:
        raw.emplace(attribute.name(), attribute.i());
        break;
      case onnx::AttributeProto::FLOAT:
        raw.emplace(attribute.name(), static_cast<double>(attribute.f()));
        break;
      case onnx::AttributeProto::INTS:
        raw.emplace(attribute.name(), std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
        break;
      case onnx::AttributeProto::FLOATS:
        raw.emplace(attribute.name(), std::vector<double>(attribute.floats().begin(), attribute.floats().end()));
        break;
      case onnx::AttributeProto::STRING:
        raw.emplace(attribute.name(), attribute.s());
        break;
      default:
        return absl::UnimplementedError("an attribute of a type that the op set does not have");
    }
  }
  return raw;
}

// Inputs that are typed attributes in the op set: a case knows their values.
absl::Status TakeAttributesFromInputs(OpType op, std::vector<std::string>* names, std::vector<Tensor>* inputs,
                                      RawAttributes* raw) {
  const absl::Span<const AttributeInput> rows = AttributeInputsOf(op);
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (row->input >= names->size()) continue;
    if (!(*names)[row->input].empty()) {
      // Files stand for the inputs that are there.
      const auto before = std::count_if(names->begin(), names->begin() + static_cast<int64_t>(row->input),
                                        [](const std::string& name) { return !name.empty(); });
      LS_ASSIGN_OR_RETURN(RawAttribute value, AttributeFromTensor(row->kind, (*inputs)[static_cast<size_t>(before)]));
      raw->insert_or_assign(row->attribute, std::move(value));
      inputs->erase(inputs->begin() + before);
    }
    names->erase(names->begin() + static_cast<int64_t>(row->input));
  }
  if (op == OpType::kDropout) {
    const bool trains = names->size() > 2 && (*inputs).back().elements<bool>()[0];
    const bool drops =
        (*names)[names->size() > 1 ? 1 : 0].empty() || (*inputs).size() < 3 || (*inputs)[1].elements<float>()[0] != 0;
    if (trains && drops) return absl::UnimplementedError("a dropout with another generator's numbers");
    raw->erase("seed");
    raw->erase("ratio");
    names->resize(1);
    inputs->resize(1);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NodeCase> ReadNodeCase(const std::string& folder) {
  onnx::ModelProto model;
  LS_RETURN_IF_ERROR(Read(folder + "/model.onnx", &model));
  if (model.graph().node_size() != 1) return absl::UnimplementedError("several nodes");
  const onnx::NodeProto& node = model.graph().node(0);
  const std::optional<OpType> op = FindOp(node.domain(), node.op_type());
  if (!op.has_value()) return absl::UnimplementedError(absl::StrCat("op ", node.op_type()));

  for (const onnx::ValueInfoProto& input : model.graph().input()) {
    if (!input.type().has_tensor_type()) return absl::UnimplementedError("values that are not tensors");
  }
  NodeCase made;
  LS_ASSIGN_OR_RETURN(made.inputs, ReadTensors(folder, "input", model.graph().input_size()));
  LS_ASSIGN_OR_RETURN(made.expected, ReadTensors(folder, "output", node.output_size()));
  LS_ASSIGN_OR_RETURN(RawAttributes raw, ToRaw(node));
  if (*op == OpType::kMaxPool && node.output_size() > 1) {
    return absl::UnimplementedError("a second output that the canonical form does not have");
  }
  if (!made.inputs.empty()) {
    const Shape* weights = made.inputs.size() > 1 ? &made.inputs[1].shape() : nullptr;
    LS_RETURN_IF_ERROR(FillWindow(*op, made.inputs[0].shape(), weights, &raw));
  }
  std::vector<std::string> names(node.input().begin(), node.input().end());
  LS_RETURN_IF_ERROR(TakeAttributesFromInputs(*op, &names, &made.inputs, &raw));
  for (const Tensor& input : made.inputs) {
    made.graph.inputs.push_back({absl::StrCat("i", made.graph.inputs.size()), input.dtype(), input.shape()});
  }
  // Present inputs come in order; an omitted one has no file.
  size_t next = 0;
  for (std::string& name : names) {
    if (!name.empty()) name = absl::StrCat("i", next++);
  }
  Node ours{"node", *op, names, {}, {}};
  for (int i = 0; i < node.output_size(); ++i) ours.outputs.push_back(absl::StrCat("o", i));
  made.graph.outputs = ours.outputs;
  LS_ASSIGN_OR_RETURN(ours.attributes, ParseAttributes(*op, "node", raw));
  made.graph.nodes.push_back(std::move(ours));
  return made;
}

}  // namespace lockstep
