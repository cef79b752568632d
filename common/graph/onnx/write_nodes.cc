#include "common/graph/onnx/write_nodes.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/onnx_file.h"
#include "common/graph/ops/attribute_inputs.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

using Kind = AttributeInput::Kind;

constexpr int64_t kOpset = 20;

// Attributes of ours that ONNX does not have.
bool IsOurs(OpType op, const std::string& name) {
  if (op == OpType::kInstanceNormalization && name == "num_groups") return true;
  if (op == OpType::kEinsum && name == "operand") return true;
  return name == "input_shape" || name == "unbiased_running_var" || name == "dtype";
}

template <typename T>
Tensor Scalar(double number) {
  return Tensor::Of<T>({}, {static_cast<T>(number)});
}

// InvalidArgument for types that the op set moves but does not compute with.
absl::StatusOr<Tensor> NumberOf(DType dtype, double number) {
  switch (dtype) {
    case DType::kF32:
      return Scalar<float>(number);
    case DType::kF64:
      return Scalar<double>(number);
    case DType::kI64:
      return Scalar<int64_t>(number);
    case DType::kI32:
      return Scalar<int32_t>(number);
    case DType::kI8:
      return Scalar<int8_t>(number);
    case DType::kU8:
      return Scalar<uint8_t>(number);
    default:
      return absl::InvalidArgumentError(absl::StrCat("has a number as operand, and its type ", DTypeName(dtype),
                                                     " is none that numbers are written in"));
  }
}

class NodeWriter {
 public:
  NodeWriter(const Graph& graph, onnx::GraphProto* to) : graph_(graph), to_(to) {
    for (const auto& [name, info] : graph.values) taken_.insert(name);
  }

  absl::StatusOr<int64_t> Write() {
    for (const Constant& constant : graph_.constants) AddConstant(constant.name, *constant.value);
    for (const Node& node : graph_.nodes) {
      const absl::Status written = WriteNode(node);
      if (!written.ok()) {
        return absl::Status(written.code(), absl::StrCat(NodeLabel(node), ": ", written.message()));
      }
    }
    return opset_;
  }

 private:
  const ValueInfo& Info(const std::string& value) const { return graph_.values.at(value); }

  std::string NewName(std::string name) {
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  // The elements of a constant under that name.
  void AddConstant(const std::string& name, const Tensor& value) {
    onnx::NodeProto* node = to_->add_node();
    node->set_op_type("Constant");
    node->set_name(absl::StrCat(name, ".constant"));
    node->add_output(name);
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    WriteOnnxTensorSpec(name, value.dtype(), value.shape(), attribute->mutable_t());
    attribute->mutable_t()->set_raw_data(value.bytes().data(), value.bytes().size());
  }

  // A constant that only `node` reads.
  std::string AddOperand(const Node& node, const std::string& what, const Tensor& value) {
    std::string name = NewName(absl::StrCat(node.name, ".", what));
    AddConstant(name, value);
    return name;
  }

  void AddNode(const Node& node, absl::string_view op, std::vector<std::string> inputs, const RawAttributes& attributes,
               std::vector<std::string> outputs) {
    while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
    while (!outputs.empty() && outputs.back().empty()) outputs.pop_back();
    onnx::NodeProto* message = to_->add_node();
    message->set_name(node.name);
    message->set_op_type(std::string(op));
    message->mutable_input()->Assign(inputs.begin(), inputs.end());
    message->mutable_output()->Assign(outputs.begin(), outputs.end());
    for (const auto& [name, value] : attributes) AddAttribute(name, value, message);
  }

  static void AddAttribute(const std::string& name, const RawAttribute& value, onnx::NodeProto* node) {
    const auto* ints = std::get_if<std::vector<int64_t>>(&value);
    const auto* floats = std::get_if<std::vector<double>>(&value);
    if ((ints != nullptr && ints->empty()) || (floats != nullptr && floats->empty())) return;
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    if (const auto* i = std::get_if<int64_t>(&value)) {
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(*i);
    } else if (const auto* f = std::get_if<double>(&value)) {
      attribute->set_type(onnx::AttributeProto::FLOAT);
      attribute->set_f(static_cast<float>(*f));
    } else if (const auto* s = std::get_if<std::string>(&value)) {
      attribute->set_type(onnx::AttributeProto::STRING);
      attribute->set_s(*s);
    } else if (ints != nullptr) {
      attribute->set_type(onnx::AttributeProto::INTS);
      attribute->mutable_ints()->Assign(ints->begin(), ints->end());
    } else {
      attribute->set_type(onnx::AttributeProto::FLOATS);
      for (const double element : *floats) attribute->add_floats(static_cast<float>(element));
    }
  }

  // The attribute as the tensor that ONNX wants for it; nothing where it is as if not given.
  absl::StatusOr<std::optional<Tensor>> OperandOf(const Node& node, const AttributeInput& row,
                                                  const RawAttribute& value) const {
    switch (row.kind) {
      case Kind::kInt: {
        const Shape shape = row.op == OpType::kTopK ? Shape{1} : Shape{};
        return Tensor::Of<int64_t>(shape, {std::get<int64_t>(value)});
      }
      case Kind::kInts: {
        const auto& ints = std::get<std::vector<int64_t>>(value);
        const bool needed = row.op == OpType::kReshape || row.op == OpType::kExpand || row.op == OpType::kTile;
        if (ints.empty() && !needed) return std::nullopt;
        return Tensor::Of<int64_t>({static_cast<int64_t>(ints.size())}, ints);
      }
      case Kind::kFloat:
        return NumberOf(Info(node.inputs[0]).dtype, std::get<double>(value));
      case Kind::kFloats: {
        const auto& numbers = std::get<std::vector<double>>(value);
        if (numbers.empty()) return std::nullopt;
        const std::vector<float> rounded(numbers.begin(), numbers.end());
        return Tensor::Of<float>({static_cast<int64_t>(rounded.size())}, rounded);
      }
    }
    return std::nullopt;
  }

  absl::Status WriteNode(const Node& node) {
    if (OpDomain(node.op) != "") return WriteOwn(node);
    RawAttributes raw = SchemaOf(node.op).format(node.attributes);
    std::erase_if(raw, [&](const auto& entry) { return IsOurs(node.op, entry.first); });
    std::vector<std::string> inputs = node.inputs;
    for (const AttributeInput& row : AttributeInputsOf(node.op)) {
      std::optional<Tensor> operand;
      if (auto found = raw.extract(row.attribute); !found.empty()) {
        LS_ASSIGN_OR_RETURN(operand, OperandOf(node, row, found.mapped()));
      }
      if (inputs.size() < row.input) inputs.resize(row.input);
      inputs.insert(inputs.begin() + static_cast<int64_t>(row.input),
                    operand.has_value() ? AddOperand(node, row.attribute, *operand) : "");
    }
    switch (node.op) {
      case OpType::kDropout:
        inputs.resize(1);
        inputs.push_back(AddOperand(node, "ratio", Scalar<float>(std::get<double>(raw["ratio"]))));
        inputs.push_back(
            AddOperand(node, "training_mode", Tensor::Of<bool>({}, {std::get<int64_t>(raw["training_mode"]) != 0})));
        raw.clear();
        break;
      case OpType::kBatchNormalization:
        // Whoever trains the file moves the statistics; whoever runs it takes them as they are.
        raw["training_mode"] = int64_t{0};
        break;
      case OpType::kSplit:
        if (inputs.size() < 2 || inputs[1].empty()) raw["num_outputs"] = static_cast<int64_t>(node.outputs.size());
        break;
      case OpType::kGroupNormalization:
        opset_ = std::max<int64_t>(opset_, 21);  // before, its scale was one per group
        break;
      case OpType::kRmsNormalization:
        opset_ = std::max<int64_t>(opset_, 23);
        break;
      default:
        break;
    }
    AddNode(node, OpName(node.op), std::move(inputs), raw, node.outputs);
    return absl::OkStatus();
  }

  absl::Status WriteOwn(const Node& node) {
    if (node.op == OpType::kScale) {
      const double factor = std::get<ScaleAttributes>(node.attributes).factor;
      LS_ASSIGN_OR_RETURN(const Tensor number, NumberOf(Info(node.inputs[0]).dtype, factor));
      const std::string operand = AddOperand(node, "factor", number);
      AddNode(node, "Mul", {node.inputs[0], operand}, {}, node.outputs);
      return absl::OkStatus();
    }
    if (node.op == OpType::kBatchMatMul) {
      const auto& product = std::get<BatchMatMulAttributes>(node.attributes);
      const std::string a = product.trans_a ? Transposed(node, 0) : node.inputs[0];
      const std::string b = product.trans_b ? Transposed(node, 1) : node.inputs[1];
      AddNode(node, "MatMul", {a, b}, {}, node.outputs);
      return absl::OkStatus();
    }
    if (node.op == OpType::kUniformLike || node.op == OpType::kNormalLike) return WriteDraw(node);
    return absl::InvalidArgumentError("has no counterpart in ONNX. Take it out of what is exported");
  }

  absl::Status WriteDraw(const Node& node) {
    const auto& random = std::get<RandomLikeAttributes>(node.attributes);
    const bool normal = node.op == OpType::kNormalLike;
    RawAttributes raw = {{normal ? "mean" : "low", random.a},
                         {normal ? "scale" : "high", random.b},
                         {"dtype", static_cast<int64_t>(OnnxFromDType(random.dtype))}};
    const std::string op = normal ? "RandomNormal" : "RandomUniform";
    if (random.shape.has_value() && (random.shape->empty() || random.shape->front() >= 0)) {
      raw.emplace("shape", *random.shape);
      AddNode(node, op, {}, raw, node.outputs);
    } else {
      AddNode(node, op + "Like", {random.shape.has_value() ? Batched(node, *random.shape) : node.inputs[0]}, raw,
              node.outputs);
    }
    return absl::OkStatus();
  }

  // Zeros of `shape`, of which the first dimension is that of the node's first input.
  std::string Batched(const Node& node, const Shape& shape) {
    const auto add = [&](const char* suffix, const char* op, std::vector<std::string> inputs, RawAttributes raw) {
      Node part;
      part.name = absl::StrCat(node.name, ".", suffix);
      const std::string output = NewName(part.name);
      AddNode(part, op, std::move(inputs), raw, {output});
      return output;
    };
    const std::string batch = add("batch", "Shape", {node.inputs[0]}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
    const std::vector<int64_t> others(shape.begin() + 1, shape.end());
    const Tensor rest = Tensor::Of<int64_t>({static_cast<int64_t>(others.size())}, others);
    const std::string whole = add("shape", "Concat", {batch, AddOperand(node, "rest", rest)}, {{"axis", int64_t{0}}});
    return add("zeros", "ConstantOfShape", {whole}, {});
  }

  // An operand of a product with its last two dimensions exchanged.
  std::string Transposed(const Node& node, int operand) {
    std::vector<int64_t> order(Info(node.inputs[operand]).shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    Node transpose;
    transpose.name = absl::StrCat(node.name, ".transposed", operand);
    const std::string output = NewName(transpose.name);
    AddNode(transpose, "Transpose", {node.inputs[operand]}, {{"perm", order}}, {output});
    return output;
  }

  const Graph& graph_;
  onnx::GraphProto* to_;
  std::set<std::string> taken_;
  int64_t opset_ = kOpset;
};

}  // namespace

void WriteOnnxTensorSpec(const std::string& name, DType dtype, const Shape& shape, onnx::TensorProto* to) {
  to->set_name(name);
  to->set_data_type(OnnxFromDType(dtype));
  to->mutable_dims()->Assign(shape.begin(), shape.end());
}

absl::StatusOr<int64_t> WriteOnnxNodes(const Graph& graph, onnx::GraphProto* to) {
  return NodeWriter(graph, to).Write();
}

}  // namespace lockstep
