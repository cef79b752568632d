#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/folding_work.h"
#include "common/graph/onnx/importer.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/ops/attribute_inputs.h"
#include "common/graph/ops/auto_pad.h"
#include "common/graph/ops/onnx_dtype.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// Of the graph, and of those that become constants: more than any model has, and few enough to be kept in memory.
constexpr size_t kMostNodes = size_t{1} << 20;
constexpr size_t kMostFolded = size_t{1} << 18;

bool HasWindow(OpType op) {
  const absl::string_view name = OpName(op);
  return name == "Conv" || name == "ConvTranspose" || name == "MaxPool" || name == "AveragePool";
}

bool NamesType(absl::string_view attribute) {
  return attribute == "to" || attribute == "dtype" || attribute == "output_datatype" ||
         attribute == "softmax_precision";
}

}  // namespace

OnnxImporter::Reader OnnxImporter::ReaderOf(const onnx::NodeProto& node) {
  static const auto& readers = *new std::map<absl::string_view, Reader>{
      {"Constant", &OnnxImporter::ReadConstant},
      {"Shape", &OnnxImporter::ReadShape},
      {"Size", &OnnxImporter::ReadSize},
      {"ConstantOfShape", &OnnxImporter::ReadConstantOfShape},
      {"Range", &OnnxImporter::ReadRange},
      {"Identity", &OnnxImporter::ReadIdentity},
      {"Cast", &OnnxImporter::ReadCast},
      {"CastLike", &OnnxImporter::ReadCastLike},
      {"Clip", &OnnxImporter::ReadClip},
      {"Dropout", &OnnxImporter::ReadDropout},
      {"RandomUniform", &OnnxImporter::ReadRandom},
      {"RandomUniformLike", &OnnxImporter::ReadRandom},
      {"RandomNormal", &OnnxImporter::ReadRandom},
      {"RandomNormalLike", &OnnxImporter::ReadRandom},
      {"Bernoulli", &OnnxImporter::ReadBernoulli},
      {"Multinomial", &OnnxImporter::ReadMultinomial},
      {"BatchNormalization", &OnnxImporter::ReadBatchNormalization},
      {"And", &OnnxImporter::ReadLogical},
      {"Or", &OnnxImporter::ReadLogical},
      {"Max", &OnnxImporter::ReadVariadic},
      {"Min", &OnnxImporter::ReadVariadic},
      {"Sum", &OnnxImporter::ReadVariadic},
      {"Mean", &OnnxImporter::ReadVariadic},
      {"Concat", &OnnxImporter::ReadConcat},
      {"Softmax", &OnnxImporter::ReadSoftmax},
      {"LogSoftmax", &OnnxImporter::ReadSoftmax},
      {"SplitToSequence", &OnnxImporter::ReadSplitToSequence},
      {"SequenceAt", &OnnxImporter::ReadSequenceAt},
      {"Attention", &OnnxImporter::ReadAttention},
      {"RotaryEmbedding", &OnnxImporter::ReadRotaryEmbedding},
      {"SpaceToDepth", &OnnxImporter::ReadSpaceToDepth},
      {"SwiGLU", &OnnxImporter::ReadSwish},
      {"Swish", &OnnxImporter::ReadSwish},
      {"GroupNormalization", &OnnxImporter::ReadGroupNormalization},
      {"LRN", &OnnxImporter::ReadLrn},
      {"LpPool", &OnnxImporter::ReadLpPool},
      {"MeanVarianceNormalization", &OnnxImporter::ReadMeanVariance},
      {"CenterCropPad", &OnnxImporter::ReadCenterCropPad},
      {"Hardmax", &OnnxImporter::ReadHardmax},
      {"CumProd", &OnnxImporter::ReadCumProd},
      {"Mod", &OnnxImporter::ReadMod},
      {"Col2Im", &OnnxImporter::ReadCol2Im},
      {"EyeLike", &OnnxImporter::ReadEyeLike},
      {"Scatter", &OnnxImporter::ReadScatter},
      {"QuantizeLinear", &OnnxImporter::ReadQuantizeLinear},
      {"DequantizeLinear", &OnnxImporter::ReadDequantizeLinear},
      {"DynamicQuantizeLinear", &OnnxImporter::ReadDynamicQuantizeLinear},
      {"Resize", &OnnxImporter::ReadResize},
      {"Upsample", &OnnxImporter::ReadResize},
      {"GridSample", &OnnxImporter::ReadGridSample},
      {"AffineGrid", &OnnxImporter::ReadAffineGrid},
      {"DFT", &OnnxImporter::ReadDft},
      {"STFT", &OnnxImporter::ReadStft},
      {"HannWindow", &OnnxImporter::ReadWindow},
      {"HammingWindow", &OnnxImporter::ReadWindow},
      {"BlackmanWindow", &OnnxImporter::ReadWindow},
      {"RNN", &OnnxImporter::ReadRecurrent},
      {"GRU", &OnnxImporter::ReadRecurrent},
      {"LSTM", &OnnxImporter::ReadRecurrent},
  };
  if (node.domain() == kBranchDomain) {
    return node.op_type() == "BranchInput" ? &OnnxImporter::ReadBranchInput : &OnnxImporter::ReadBranchOutput;
  }
  const auto found = readers.find(node.op_type());
  return found == readers.end() ? &OnnxImporter::ReadGeneric : found->second;
}

absl::StatusOr<int> OnnxImporter::AddNode(int at) {
  const onnx::NodeProto& listed = nodes_.node(at);
  const bool loop = listed.domain() == kLoopDomain;
  const int next = (loop ? EndOfLoop(at) : at) + 1;
  const auto branch = listed.output_size() == 0 ? branch_of_.end() : branch_of_.find(listed.output(0));
  branch_ = branch == branch_of_.end() ? -1 : branch->second;
  LS_ASSIGN_OR_RETURN(const bool taken, IsTaken(branch_));
  if (!taken) return next;
  const onnx::NodeProto& node = loop ? loops_[static_cast<size_t>(LoopNumber(listed))] : listed;
  std::string name = node.name().empty() ? absl::StrCat(node.op_type(), "_", node_names_.size()) : node.name();
  name += trip_;
  while (!node_names_.insert(name).second) absl::StrAppend(&name, "_");
  const auto within = [&](const absl::Status& status) {
    // What enters a branch or a body stands in no file: it is told of the node that holds the graph.
    const size_t place = node.domain() == kBranchDomain ? name.find("/outside/") : std::string::npos;
    const std::string shown = place == std::string::npos
                                  ? absl::StrCat("node '", name, "' (", node.op_type(), ")")
                                  : absl::StrCat("a graph in node '", name.substr(0, place), "'");
    return absl::Status(status.code(), absl::StrCat(shown, ": ", status.message()));
  };
  if (!IsOfOnnx(node) && node.domain() != kBranchDomain) {
    return within(absl::UnimplementedError(absl::StrCat("the domain '", node.domain(), "' is not known")));
  }
  if (node.output().empty()) return within(absl::InvalidArgumentError("has no output"));
  std::set<std::string> given;
  for (const std::string& output : node.output()) {
    if (output.empty()) continue;
    if (values_.count(output) != 0 || initializers_.count(output) != 0 || !given.insert(output).second) {
      return within(absl::InvalidArgumentError(absl::StrCat("gives '", output, "', which exists already")));
    }
  }
  Call call{&node, {}, name};
  absl::Status read = loop ? ReadLoop(call, at, next - 1) : (this->*ReaderOf(node))(call);
  if (read.ok() && options_.trainable) read = DropOutputs(node);
  if (read.ok() && options_.trainable) read = StopOutputs(node);
  if (!read.ok()) return within(read);
  return next;
}

absl::StatusOr<RawAttributes> OnnxImporter::ReadAttributes(const onnx::NodeProto& node) {
  RawAttributes raw;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    switch (attribute.type()) {
      case onnx::AttributeProto::INT:
        raw.emplace(attribute.name(), NamesType(attribute.name()) ? HeldType(attribute.i()) : attribute.i());
        break;
      case onnx::AttributeProto::FLOAT:
        raw.emplace(attribute.name(), static_cast<double>(attribute.f()));
        break;
      case onnx::AttributeProto::FLOATS:
        raw.emplace(attribute.name(), std::vector<double>(attribute.floats().begin(), attribute.floats().end()));
        break;
      case onnx::AttributeProto::INTS:
        raw.emplace(attribute.name(), std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
        break;
      case onnx::AttributeProto::STRING:
        raw.emplace(attribute.name(), attribute.s());
        break;
      default:
        return absl::UnimplementedError(absl::StrCat("attribute '", attribute.name(),
                                                     "' is a graph, a tensor or a list that the op set does not have"));
    }
  }
  return raw;
}

absl::StatusOr<const Tensor*> OnnxImporter::NeedKnown(const Call& call, int input, absl::string_view what) {
  const std::string name = input < call.node->input_size() ? call.node->input(input) : "";
  if (name.empty()) return absl::InvalidArgumentError(absl::StrCat("input ", input, " (", what, ") is missing"));
  LS_ASSIGN_OR_RETURN(const Tensor* tensor, KnownElements(name));
  if (tensor != nullptr) return tensor;
  return absl::UnimplementedError(
      absl::StrCat("input ", input, " (", what, ") is '", name,
                   "', which depends on the data; it has to be known when the model is read"));
}

absl::StatusOr<int64_t> OnnxImporter::KnownInt(const Call& call, int input, absl::string_view what) {
  LS_ASSIGN_OR_RETURN(const Tensor* tensor, NeedKnown(call, input, what));
  LS_ASSIGN_OR_RETURN(const RawAttribute value, AttributeFromTensor(AttributeInput::Kind::kInt, *tensor));
  return std::get<int64_t>(value);
}

absl::StatusOr<std::vector<int64_t>> OnnxImporter::KnownInts(const Call& call, int input, absl::string_view what) {
  LS_ASSIGN_OR_RETURN(const Tensor* tensor, NeedKnown(call, input, what));
  LS_ASSIGN_OR_RETURN(const RawAttribute value, AttributeFromTensor(AttributeInput::Kind::kInts, *tensor));
  return std::get<std::vector<int64_t>>(value);
}

absl::StatusOr<ValueInfo> OnnxImporter::FirstFloating(const Call& call) {
  if (call.node->input_size() < 1) return absl::InvalidArgumentError("has no input");
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(call.node->input(0)));
  LS_RETURN_IF_ERROR(CheckFloating(x, "the input"));
  return x;
}

absl::Status OnnxImporter::TakeAttributeInputs(Call& call, OpType op, std::vector<std::string>* inputs) {
  const absl::Span<const AttributeInput> rows = AttributeInputsOf(op);
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (row->input >= inputs->size()) continue;
    if (!(*inputs)[row->input].empty()) {
      LS_ASSIGN_OR_RETURN(const Tensor* tensor, NeedKnown(call, static_cast<int>(row->input), row->attribute));
      absl::StatusOr<RawAttribute> value = AttributeFromTensor(row->kind, *tensor);
      if (!value.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("input ", row->input, " (", row->attribute, ") ", value.status().message()));
      }
      call.attributes.insert_or_assign(row->attribute, *std::move(value));
    }
    inputs->erase(inputs->begin() + static_cast<int64_t>(row->input));
  }
  return absl::OkStatus();
}

// What a file may leave out of a window is written out.
absl::Status OnnxImporter::MakePaddingExplicit(Call& call, OpType op) {
  if (call.node->input_size() < 1) return absl::InvalidArgumentError("has no input");
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(call.node->input(0)));
  if (call.node->input_size() < 2) return FillWindow(op, x.shape, nullptr, &call.attributes);
  LS_ASSIGN_OR_RETURN(const ValueInfo w, InfoOf(call.node->input(1)));
  return FillWindow(op, x.shape, &w.shape, &call.attributes);
}

// Before opset 7 the second operand was stretched over the first from a given axis on.
absl::Status OnnxImporter::MakeBroadcastExplicit(Call& call, std::vector<std::string>* inputs) {
  const int64_t axis = IntOf(call.attributes, "axis", -1);
  call.attributes.erase("axis");
  call.attributes.erase("broadcast");
  if (axis < 0 || inputs->size() != 2) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const ValueInfo a, InfoOf((*inputs)[0]));
  LS_ASSIGN_OR_RETURN(const ValueInfo b, InfoOf((*inputs)[1]));
  Shape shape = b.shape;
  const auto rank = static_cast<int64_t>(a.shape.size());
  if (axis > rank) {
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is outside of a tensor of rank ", rank));
  }
  const auto covered = axis + static_cast<int64_t>(shape.size());
  for (int64_t i = covered; i < rank; ++i) shape.push_back(1);
  const std::string name = Fresh(call.node->output(0) + ".stretched");
  const Call reshape{call.node, {{"shape", shape}, {"allowzero", int64_t{1}}}, name};
  LS_RETURN_IF_ERROR(Emit(reshape, OpType::kReshape, {(*inputs)[1]}, {name}));
  (*inputs)[1] = name;
  return absl::OkStatus();
}

absl::Status OnnxImporter::ReadGeneric(Call& call) {
  const std::optional<OpType> op = FindOp("", call.node->op_type());
  if (!op.has_value()) return absl::UnimplementedError("the op is not supported");
  LS_ASSIGN_OR_RETURN(call.attributes, ReadAttributes(*call.node));
  std::vector<std::string> inputs = InputsOf(*call.node);
  LS_RETURN_IF_ERROR(TakeAttributeInputs(call, *op, &inputs));
  // Its slopes were one per channel then.
  if (opset() < 7 && call.node->op_type() == "PRelu") {
    call.attributes.insert({{"broadcast", int64_t{1}}, {"axis", int64_t{1}}});
  }
  if (call.attributes.count("broadcast") != 0) LS_RETURN_IF_ERROR(MakeBroadcastExplicit(call, &inputs));
  if (HasWindow(*op)) LS_RETURN_IF_ERROR(MakePaddingExplicit(call, *op));
  return Emit(call, *op, std::move(inputs), OutputsOf(*call.node));
}

absl::Status OnnxImporter::Emit(const Call& call, OpType op, std::vector<std::string> inputs,
                                std::vector<std::string> outputs) {
  LS_ASSIGN_OR_RETURN(const bool rare, ComputesRareIntegers(op, inputs));
  if (rare) return EmitWidened(call, op, inputs, outputs);
  absl::StatusOr<OpAttributes> attributes = SchemaOf(op).parse(call.attributes);
  if (!attributes.ok()) return attributes.status();
  Node node{call.label, op, {}, outputs, *std::move(attributes)};
  bool constant = !inputs.empty() && op != OpType::kUniformLike && op != OpType::kNormalLike;
  for (const std::string& input : inputs) {
    if (input.empty()) continue;
    LS_ASSIGN_OR_RETURN(const Value* value, Find(input));
    constant = constant && value->constant != nullptr;
  }
  if (constant) {
    if (++folded_nodes_ <= kMostFolded) return FoldNode(std::move(node), inputs);
    return absl::InvalidArgumentError(
        absl::StrCat("with it more than ", kMostFolded, " nodes of the model compute constants, its layers unrolled"));
  }
  for (const std::string& input : inputs) {
    LS_ASSIGN_OR_RETURN(std::string name, NameInGraph(input));
    node.inputs.push_back(std::move(name));
  }
  if (model_.graph.nodes.size() >= kMostNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("with it the model has more than ", kMostNodes, " nodes, its layers unrolled"));
  }
  for (std::string& output : node.outputs) output = NameInTrip(output);
  const std::vector<std::string> names = node.outputs;
  LS_RETURN_IF_ERROR(AppendNode(&model_.graph, std::move(node)));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].empty()) values_[outputs[i]] = {nullptr, nullptr, names[i], {}, false};
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::TakeMemory(int64_t bytes) {
  if (bytes > kMaxFoldedBytes) {
    return absl::InvalidArgumentError(absl::StrCat("makes a constant of ", bytes, " bytes"));
  }
  folded_bytes_ += bytes;
  if (folded_bytes_ <= kMaxAllFoldedBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("with it the constants that the model computes have ", folded_bytes_, " bytes"));
}

absl::StatusOr<Tensor> OnnxImporter::NewConstant(DType dtype, Shape shape) {
  LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(dtype, shape));
  LS_RETURN_IF_ERROR(TakeMemory(bytes));
  return Tensor::Create(dtype, std::move(shape));
}

absl::Status OnnxImporter::TakeTime(const Node& node, absl::Span<const ValueInfo* const> inputs,
                                    absl::Span<const ValueInfo> outputs) {
  folded_work_ += FoldingWork(node, inputs, outputs);
  if (folded_work_ <= kMaxFoldedWork) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "takes too long to compute while the model is read: its inputs are all constants. Compute it before the export, "
      "or make one of them an input or a parameter");
}

absl::Status OnnxImporter::FoldNode(Node node, const std::vector<std::string>& inputs) {
  std::vector<const Tensor*> tensors;
  std::vector<ValueInfo> infos;
  for (const std::string& input : inputs) {
    tensors.push_back(input.empty() ? nullptr : values_.at(input).constant.get());
    infos.push_back(tensors.back() == nullptr ? ValueInfo{}
                                              : ValueInfo{tensors.back()->dtype(), tensors.back()->shape()});
  }
  std::vector<const ValueInfo*> places;
  for (size_t i = 0; i < inputs.size(); ++i) places.push_back(tensors[i] == nullptr ? nullptr : &infos[i]);
  node.inputs = inputs;
  LS_ASSIGN_OR_RETURN(const std::vector<ValueInfo> results, InferNode(node, places));
  for (const ValueInfo& result : results) {
    LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(result.dtype, result.shape));
    LS_RETURN_IF_ERROR(TakeMemory(bytes));
  }
  LS_RETURN_IF_ERROR(TakeTime(node, places, results));
  LS_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, options_.evaluate(node, tensors));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) Define(node.outputs[i], std::move(outputs[i]));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
