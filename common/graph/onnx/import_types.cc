// Values whose types the op set does not compute with. Those of half precision are held in float32. Integers that Cast
// alone takes are computed in wider ones, of which the result has the low bits.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/onnx/importer.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/ops/onnx_dtype.h"
#include "common/status/status_macros.h"
#include "common/tensor/half.h"

namespace lockstep {
namespace {

// Ops whose results in a wider integer type, cut to the low bits, are those of the type itself.
bool WrapsAround(OpType op) {
  switch (op) {
    case OpType::kAdd:
    case OpType::kSub:
    case OpType::kMul:
    case OpType::kDiv:
    case OpType::kMod:
    case OpType::kMin:
    case OpType::kMax:
    case OpType::kPow:
    case OpType::kNeg:
    case OpType::kAbs:
    case OpType::kSign:
    case OpType::kClip:
    case OpType::kReduceSum:
    case OpType::kReduceMax:
    case OpType::kReduceMin:
      return true;
    default:
      return false;
  }
}

bool GivesBools(OpType op) {
  return op == OpType::kEqual || op == OpType::kGreater || op == OpType::kGreaterOrEqual || op == OpType::kLess ||
         op == OpType::kLessOrEqual;
}

}  // namespace

DType OnnxImporter::HeldAs(DType dtype) {
  if (!IsHalf(dtype)) return dtype;
  halves_.emplace(DTypeName(dtype));
  return DType::kF32;
}

absl::StatusOr<Tensor> OnnxImporter::ReadTensor(const onnx::TensorProto& message) {
  LS_ASSIGN_OR_RETURN(Tensor tensor, ReadOnnxTensor(message, folder_));
  if (HeldAs(tensor.dtype()) == tensor.dtype()) return tensor;
  return Widened(tensor);
}

void OnnxImporter::WarnOfHalves() {
  if (halves_.empty()) return;
  model_.warnings.push_back(
      absl::StrCat("the model has values of ", absl::StrJoin(halves_, " and "),
                   ": all of it is computed, and its parameters are kept, in float32, without the roundings. ",
                   "`train.precision: bf16` makes training faster"));
}

int64_t OnnxImporter::HeldType(int64_t element_type) {
  if (element_type != onnx::FLOAT16 && element_type != onnx::BFLOAT16) return element_type;
  return OnnxFromDType(HeldAs(element_type == onnx::FLOAT16 ? DType::kF16 : DType::kBF16));
}

absl::Status OnnxImporter::ReadCast(Call& call) {
  if (call.node->input_size() != 1) return absl::InvalidArgumentError("takes one input");
  LS_ASSIGN_OR_RETURN(call.attributes, ReadAttributes(*call.node));
  LS_ASSIGN_OR_RETURN(const ValueInfo from, InfoOf(call.node->input(0)));
  // Of a file in half precision both types may be held as one.
  const bool same = IntOf(call.attributes, "to", onnx::UNDEFINED) == OnnxFromDType(from.dtype);
  if (same && !halves_.empty()) return Alias(call.node->output(0), call.node->input(0)), absl::OkStatus();
  return EmitCast(call, from.dtype);
}

absl::Status OnnxImporter::EmitCast(const Call& call, DType from) {
  LS_ASSIGN_OR_RETURN(const DType to, DTypeFromOnnx(IntOf(call.attributes, "to", onnx::UNDEFINED)));
  const bool rare = IsRareInteger(from) || IsRareInteger(to);
  std::string x = call.node->input(0);
  if (rare && !CastsToRareInteger(from) && !CastsToRareInteger(to)) {
    // Numbers of floating point come by way of I64, integers by way of one that has all of them.
    const DType between = IsRareInteger(from) ? WideInteger(from) : IsFloating(from) ? DType::kI64 : DType::kI32;
    const std::string wide = Fresh(absl::StrCat(call.label, ".wide"));
    LS_RETURN_IF_ERROR(Emit({call.node, {{"to", OnnxNumber(between)}}, wide}, OpType::kCast, {x}, {wide}));
    x = wide;
  }
  return Emit(call, OpType::kCast, {x}, {call.node->output(0)});
}

absl::Status OnnxImporter::ReadCastLike(Call& call) {
  if (call.node->input_size() != 2) return absl::InvalidArgumentError("takes two inputs");
  LS_ASSIGN_OR_RETURN(const ValueInfo from, InfoOf(call.node->input(0)));
  LS_ASSIGN_OR_RETURN(const ValueInfo like, InfoOf(call.node->input(1)));
  if (from.dtype == like.dtype) return Alias(call.node->output(0), call.node->input(0)), absl::OkStatus();
  call.attributes = {{"to", static_cast<int64_t>(OnnxFromDType(like.dtype))}};
  return EmitCast(call, from.dtype);
}

absl::Status OnnxImporter::EmitWidened(const Call& call, OpType op, const std::vector<std::string>& inputs,
                                       const std::vector<std::string>& outputs) {
  std::vector<std::string> wide = inputs;
  std::optional<DType> rare;  // of the first input, and so of the result
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].empty()) continue;
    LS_ASSIGN_OR_RETURN(const ValueInfo info, InfoOf(inputs[i]));
    if (!IsRareInteger(info.dtype)) continue;
    if (i == 0) rare = info.dtype;
    wide[i] = Fresh(absl::StrCat(call.label, ".wide.", i));
    const Call cast{call.node, {{"to", OnnxNumber(WideInteger(info.dtype))}}, wide[i]};
    LS_RETURN_IF_ERROR(Emit(cast, OpType::kCast, {inputs[i]}, {wide[i]}));
  }
  if (!rare.has_value() || GivesBools(op)) return Emit(call, op, wide, outputs);
  const std::string result = Fresh(absl::StrCat(call.label, ".result"));
  LS_RETURN_IF_ERROR(Emit({call.node, call.attributes, result}, op, wide, {result}));
  return Emit({call.node, {{"to", OnnxNumber(*rare)}}, call.label}, OpType::kCast, {result}, outputs);
}

absl::StatusOr<bool> OnnxImporter::ComputesRareIntegers(OpType op, const std::vector<std::string>& inputs) {
  if (!WrapsAround(op) && !GivesBools(op)) return false;
  for (const std::string& input : inputs) {
    if (input.empty()) continue;
    LS_ASSIGN_OR_RETURN(const ValueInfo info, InfoOf(input));
    if (IsRareInteger(info.dtype)) return true;
  }
  return false;
}

}  // namespace lockstep
