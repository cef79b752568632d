// Nodes that are more than an op with attributes: constants, shapes, sequences, forms of older opsets.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/importer.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/ops/attribute_inputs.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// Of a sequence: what Split takes.
constexpr int64_t kMostParts = 4096;

template <typename T>
Tensor ListOf(const std::vector<T>& values) {
  return Tensor::Of<T>({static_cast<int64_t>(values.size())}, values);
}

// start, start + delta, … below limit (above it for a negative delta), as ONNX's Range.
template <typename T>
absl::StatusOr<Tensor> MakeRange(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  const T first = start.elements<T>()[0];
  const T last = limit.elements<T>()[0];
  const T step = delta.elements<T>()[0];
  if (step == T(0)) return absl::InvalidArgumentError("a range whose delta is 0");
  const double count =
      std::max(0.0, (static_cast<double>(last) - static_cast<double>(first)) / static_cast<double>(step));
  if (count > static_cast<double>(kMaxFoldedBytes / 8))
    return absl::InvalidArgumentError("a range of too many elements");
  int64_t elements = static_cast<int64_t>(count);
  if (static_cast<double>(elements) < count) ++elements;
  LS_ASSIGN_OR_RETURN(Tensor range, Tensor::Create(DTypeOf<T>(), {elements}));
  const absl::Span<T> values = range.elements<T>();
  for (int64_t i = 0; i < elements; ++i) {
    if constexpr (std::is_integral_v<T>) {
      // What lies between does not overflow; the way there may.
      values[i] = static_cast<T>(static_cast<uint64_t>(first) + static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
    } else {
      values[i] = static_cast<T>(static_cast<double>(first) + static_cast<double>(i) * static_cast<double>(step));
    }
  }
  return range;
}

}  // namespace

absl::Status OnnxImporter::ReadConstant(Call& call) {
  const std::string& output = call.node->output(0);
  if (const auto* value = FindAttribute(*call.node, "value")) {
    LS_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(value->t()));
    Define(output, std::move(tensor));
  } else if (const auto* ints = FindAttribute(*call.node, "value_ints")) {
    Define(output, ListOf(std::vector<int64_t>(ints->ints().begin(), ints->ints().end())));
  } else if (const auto* floats = FindAttribute(*call.node, "value_floats")) {
    Define(output, ListOf(std::vector<float>(floats->floats().begin(), floats->floats().end())));
  } else if (const auto* integer = FindAttribute(*call.node, "value_int")) {
    Define(output, Tensor::Of<int64_t>({}, {integer->i()}));
  } else if (const auto* number = FindAttribute(*call.node, "value_float")) {
    Define(output, Tensor::Of<float>({}, {number->f()}));
  } else {
    return absl::UnimplementedError("a constant that is neither a tensor nor numbers");
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::ReadShape(Call& call) {
  if (call.node->input_size() != 1) return absl::InvalidArgumentError("takes one input");
  LS_ASSIGN_OR_RETURN(const ValueInfo info, InfoOf(call.node->input(0)));
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"start", "end"}));
  const auto rank = static_cast<int64_t>(info.shape.size());
  const auto clamp = [rank](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  const int64_t begin = clamp(IntOf(raw, "start", 0));
  const int64_t end = std::max(begin, clamp(IntOf(raw, "end", rank)));
  Define(call.node->output(0), ListOf(std::vector<int64_t>(info.shape.begin() + begin, info.shape.begin() + end)));
  return absl::OkStatus();
}

absl::Status OnnxImporter::ReadSize(Call& call) {
  if (call.node->input_size() != 1) return absl::InvalidArgumentError("takes one input");
  LS_ASSIGN_OR_RETURN(const ValueInfo info, InfoOf(call.node->input(0)));
  Define(call.node->output(0), Tensor::Of<int64_t>({}, {NumElements(info.shape)}));
  return absl::OkStatus();
}

absl::Status OnnxImporter::ReadConstantOfShape(Call& call) {
  LS_ASSIGN_OR_RETURN(const Tensor* dims, NeedKnown(call, 0, "the shape"));
  if (dims->dtype() != DType::kI64) return absl::InvalidArgumentError("its shape is not I64");
  const Shape shape(dims->elements<int64_t>().begin(), dims->elements<int64_t>().end());
  Tensor one = Tensor::Of<float>({1}, {0.0f});
  if (const auto* value = FindAttribute(*call.node, "value")) {
    LS_ASSIGN_OR_RETURN(one, ReadTensor(value->t()));
    if (one.num_elements() != 1) return absl::InvalidArgumentError("its value is not one element");
  }
  LS_ASSIGN_OR_RETURN(Tensor filled, NewConstant(one.dtype(), shape));
  const int64_t size = DTypeSize(one.dtype());
  for (int64_t i = 0; i < filled.num_elements(); ++i) std::copy_n(one.data(), size, filled.data() + i * size);
  Define(call.node->output(0), std::move(filled));
  return absl::OkStatus();
}

absl::Status OnnxImporter::ReadRange(Call& call) {
  const Tensor* ends[3];
  for (int i = 0; i < 3; ++i) {
    LS_ASSIGN_OR_RETURN(ends[i], NeedKnown(call, i, "an end of the range"));
    if (ends[i]->num_elements() != 1 || ends[i]->dtype() != ends[0]->dtype()) {
      return absl::InvalidArgumentError("start, limit and delta have to be three numbers of one type");
    }
  }
  absl::StatusOr<Tensor> range = absl::UnimplementedError("a range of this element type");
  if (ends[0]->dtype() == DType::kI64) range = MakeRange<int64_t>(*ends[0], *ends[1], *ends[2]);
  if (ends[0]->dtype() == DType::kI32) range = MakeRange<int32_t>(*ends[0], *ends[1], *ends[2]);
  if (ends[0]->dtype() == DType::kF32) range = MakeRange<float>(*ends[0], *ends[1], *ends[2]);
  if (ends[0]->dtype() == DType::kF64) range = MakeRange<double>(*ends[0], *ends[1], *ends[2]);
  if (!range.ok()) return range.status();
  LS_RETURN_IF_ERROR(TakeMemory(range->byte_size()));
  Define(call.node->output(0), *std::move(range));
  return absl::OkStatus();
}

absl::Status OnnxImporter::ReadIdentity(Call& call) {
  if (call.node->input_size() != 1) return absl::InvalidArgumentError("takes one input");
  LS_RETURN_IF_ERROR(Find(call.node->input(0)).status());
  Alias(call.node->output(0), call.node->input(0));
  if (const auto quantised = quantised_.find(call.node->input(0)); quantised != quantised_.end()) {
    quantised_[call.node->output(0)] = quantised->second;
  }
  if (options_.trainable && CallsDetach(*call.node)) return StopBehind(call.node->output(0));
  return absl::OkStatus();
}

absl::Status OnnxImporter::ReadDropout(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"ratio", "seed", "is_test", "consumed_inputs"}));
  const std::vector<std::string> inputs = InputsOf(*call.node);
  if (inputs.empty()) return absl::InvalidArgumentError("has no input");
  double ratio = 0.5;
  bool training = false;
  if (const auto found = raw.find("ratio"); found != raw.end()) {
    if (const auto* given = std::get_if<double>(&found->second)) ratio = *given;
  }
  if (inputs.size() > 1 && !inputs[1].empty()) {
    LS_ASSIGN_OR_RETURN(const Tensor* tensor, NeedKnown(call, 1, "ratio"));
    LS_ASSIGN_OR_RETURN(const RawAttribute value, AttributeFromTensor(AttributeInput::Kind::kFloat, *tensor));
    ratio = std::get<double>(value);
  }
  if (inputs.size() > 2) {
    LS_ASSIGN_OR_RETURN(const Tensor* tensor, NeedKnown(call, 2, "training_mode"));
    LS_ASSIGN_OR_RETURN(const RawAttribute value, AttributeFromTensor(AttributeInput::Kind::kInt, *tensor));
    training = std::get<int64_t>(value) != 0;
  }
  if (training && ratio != 0 && !options_.trainable) {
    return absl::UnimplementedError("drops by the numbers of another generator");
  }
  const std::vector<std::string> outputs = OutputsOf(*call.node);
  if (outputs.size() > 1) {
    const bool drops = training && ratio != 0;
    call.attributes = {{"ratio", drops ? ratio : 0.0}, {"training_mode", int64_t{drops}}, {"stream", StreamOf(call)}};
    return Emit(call, OpType::kDropout, {inputs[0]}, outputs);
  }
  if (!training || ratio == 0) {
    if (ratio != 0 && options_.trainable) {
      model_.warnings.push_back(
          absl::StrCat("node '", call.label, "' (Dropout) drops nothing: the file does not set its training_mode"));
    }
    LS_RETURN_IF_ERROR(Find(inputs[0]).status());
    Alias(call.node->output(0), inputs[0]);
    return absl::OkStatus();
  }
  call.attributes = {{"ratio", ratio}, {"training_mode", int64_t{1}}, {"stream", StreamOf(call)}};
  return Emit(call, OpType::kDropout, {inputs[0]}, {call.node->output(0)});
}

// Max, Min, Sum and Mean of any number of inputs: pairs, from the first to the last.
absl::Status OnnxImporter::ReadVariadic(Call& call) {
  const std::string& type = call.node->op_type();
  const std::optional<OpType> pair = FindOp("", type == "Sum" || type == "Mean" ? "Add" : type);
  if (!pair.has_value()) return absl::UnimplementedError("the op is not supported");
  const std::vector<std::string> inputs = InputsOf(*call.node);
  if (inputs.empty()) return absl::InvalidArgumentError("has no input");
  const std::string& output = call.node->output(0);
  const std::string label = call.label;
  std::string left = inputs[0];
  const bool divides = type == "Mean" && inputs.size() > 1;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const bool last = i + 1 == inputs.size() && !divides;
    const std::string result = last ? output : Fresh(absl::StrCat(output, ".", i));
    call.label = last ? label : Fresh(absl::StrCat(label, ".", i));
    LS_RETURN_IF_ERROR(Emit(call, *pair, {left, inputs[i]}, {result}));
    left = result;
  }
  call.label = label;
  if (divides) {
    call.attributes = {{"factor", 1.0 / static_cast<double>(inputs.size())}};
    return Emit(call, OpType::kScale, {left}, {output});
  }
  if (inputs.size() == 1) {
    LS_RETURN_IF_ERROR(Find(left).status());
    Alias(output, left);
  }
  return absl::OkStatus();
}

// Without the parts that have no elements, as exporters write paddings of nothing.
absl::Status OnnxImporter::ReadConcat(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  if (call.node->input_size() < 2) return ReadGeneric(call);
  LS_ASSIGN_OR_RETURN(const ValueInfo first, InfoOf(call.node->input(0)));
  const auto rank = static_cast<int64_t>(first.shape.size());
  const absl::StatusOr<int64_t> axis = NormalizeAxis(IntOf(raw, "axis", 0), rank);
  onnx::NodeProto rest = *call.node;
  rest.clear_input();
  for (const std::string& input : call.node->input()) {
    LS_ASSIGN_OR_RETURN(ValueInfo info, InfoOf(input));
    if (!axis.ok() || info.dtype != first.dtype || info.shape.size() != first.shape.size()) return ReadGeneric(call);
    const int64_t size = std::exchange(info.shape[*axis], first.shape[*axis]);
    if (info.shape != first.shape) return ReadGeneric(call);
    if (size != 0) rest.add_input(input);
  }
  if (rest.input_size() == 0 || rest.input_size() == call.node->input_size()) return ReadGeneric(call);
  Call shorter{&rest, {}, call.label};
  return rest.input_size() == 1 ? ReadIdentity(shorter) : ReadGeneric(shorter);
}

// Before opset 13 the dimensions from `axis` on were one.
absl::Status OnnxImporter::ReadSoftmax(Call& call) {
  if (opset() >= 13) return ReadGeneric(call);
  const std::optional<OpType> op = FindOp("", call.node->op_type());
  if (!op.has_value()) return absl::UnimplementedError("the op is not supported");
  if (call.node->input_size() != 1) return absl::InvalidArgumentError("takes one input");
  LS_ASSIGN_OR_RETURN(RawAttributes raw, ReadAttributes(*call.node));
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(call.node->input(0)));
  const auto rank = static_cast<int64_t>(x.shape.size());
  LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(IntOf(raw, "axis", 1), rank));
  const std::string& output = call.node->output(0);
  if (axis == rank - 1) {
    call.attributes = {{"axis", axis}};
    return Emit(call, *op, {call.node->input(0)}, {output});
  }
  const std::string flat = Fresh(output + ".flat"), rows = Fresh(output + ".rows");
  const Call flatten{call.node, {{"axis", axis}}, flat};
  LS_RETURN_IF_ERROR(Emit(flatten, OpType::kFlatten, {call.node->input(0)}, {flat}));
  const Call by_row{call.node, {{"axis", int64_t{1}}}, rows};
  LS_RETURN_IF_ERROR(Emit(by_row, *op, {flat}, {rows}));
  call.attributes = {{"shape", x.shape}, {"allowzero", int64_t{1}}};
  return Emit(call, OpType::kReshape, {rows}, {output});
}

// A sequence is a list of values while the model is read, so that a split that exporters write so costs nothing.
absl::Status OnnxImporter::ReadSplitToSequence(Call& call) {
  const std::optional<OpType> split = FindOp("", "Split");
  if (!split.has_value()) return absl::UnimplementedError("the op is not supported");
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"axis", "keepdims"}));
  const std::vector<std::string> inputs = InputsOf(*call.node);
  if (inputs.empty()) return absl::InvalidArgumentError("has no input");
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(inputs[0]));
  LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(IntOf(raw, "axis", 0), static_cast<int64_t>(x.shape.size())));
  const int64_t size = x.shape[axis];
  int64_t part = 1;
  bool equal = inputs.size() == 1;
  std::vector<int64_t> sizes;
  const bool keeps = inputs.size() > 1 || IntOf(raw, "keepdims", 1) != 0;
  if (inputs.size() > 1) {
    LS_ASSIGN_OR_RETURN(const Tensor* given, NeedKnown(call, 1, "split"));
    LS_ASSIGN_OR_RETURN(const RawAttribute values, AttributeFromTensor(AttributeInput::Kind::kInts, *given));
    sizes = std::get<std::vector<int64_t>>(values);
    equal = given->shape().empty();
    if (equal) part = sizes[0];
  }
  if (equal) {
    if (part < 1) return absl::InvalidArgumentError("parts below 1");
    if (size / part > kMostParts) {
      return absl::InvalidArgumentError(absl::StrCat("makes more than ", kMostParts, " parts of ", size, " elements"));
    }
    sizes.clear();
    for (int64_t left = size; left > 0; left -= sizes.back()) sizes.push_back(std::min(part, left));
  }
  std::vector<std::string> parts;
  for (size_t i = 0; i < sizes.size(); ++i) parts.push_back(Fresh(absl::StrCat(call.node->output(0), ".", i)));
  call.attributes = {{"axis", axis}, {"split", sizes}};
  LS_RETURN_IF_ERROR(Emit(call, *split, {inputs[0]}, parts));
  if (!keeps) {
    Shape shape = x.shape;
    shape.erase(shape.begin() + axis);
    for (std::string& name : parts) {
      const std::string squeezed = Fresh(name + ".squeezed");
      const Call squeeze{call.node, {{"shape", shape}, {"allowzero", int64_t{1}}}, squeezed};
      LS_RETURN_IF_ERROR(Emit(squeeze, OpType::kReshape, {name}, {squeezed}));
      name = squeezed;
    }
  }
  values_[call.node->output(0)] = {nullptr, nullptr, "", std::move(parts), true};
  return absl::OkStatus();
}

absl::Status OnnxImporter::ReadSequenceAt(Call& call) {
  if (call.node->input_size() != 2) return absl::InvalidArgumentError("takes two inputs");
  LS_ASSIGN_OR_RETURN(const Value* sequence, Find(call.node->input(0)));
  if (!sequence->is_sequence) return absl::UnimplementedError("its sequence is not the result of SplitToSequence");
  const std::vector<std::string> parts = sequence->sequence;
  LS_ASSIGN_OR_RETURN(const Tensor* position, NeedKnown(call, 1, "position"));
  LS_ASSIGN_OR_RETURN(const RawAttribute value, AttributeFromTensor(AttributeInput::Kind::kInt, *position));
  LS_ASSIGN_OR_RETURN(const int64_t index, NormalizeAxis(std::get<int64_t>(value), static_cast<int64_t>(parts.size())));
  Alias(call.node->output(0), parts[static_cast<size_t>(index)]);
  return absl::OkStatus();
}

}  // namespace lockstep
