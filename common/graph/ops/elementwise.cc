#include "common/graph/ops/elementwise.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseScale(const RawAttributes& raw) {
  ScaleAttributes scale;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Float("factor", &scale.factor).Finish());
  return OpAttributes(scale);
}

RawAttributes FormatScale(const OpAttributes& attributes) {
  return {{"factor", std::get<ScaleAttributes>(attributes).factor}};
}

absl::StatusOr<OpAttributes> ParseMod(const RawAttributes& raw) {
  ModAttributes mod;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Bool("fmod", &mod.fmod).Finish());
  return OpAttributes(mod);
}

RawAttributes FormatMod(const OpAttributes& attributes) {
  return {{"fmod", int64_t{std::get<ModAttributes>(attributes).fmod}}};
}

absl::StatusOr<std::vector<ValueInfo>> InferBinary(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckNumber(*inputs[0], "input 0"));
  return InferBroadcast(inputs, inputs[0]->dtype);
}

absl::StatusOr<std::vector<ValueInfo>> InferMod(const Node& node, InputInfos inputs) {
  if (IsFloating(inputs[0]->dtype) && !std::get<ModAttributes>(node.attributes).fmod) {
    return absl::InvalidArgumentError(
        absl::StrCat("input 0 is ", DTypeName(inputs[0]->dtype), "; floating operands need fmod = 1"));
  }
  return InferBinary(node, inputs);
}

absl::StatusOr<std::vector<ValueInfo>> InferPow(const Node&, InputInfos inputs) {
  for (size_t i : {0, 1}) {
    LS_RETURN_IF_ERROR(CheckNumber(*inputs[i], i == 0 ? "the base" : "the exponent"));
    if (DTypeSize(inputs[i]->dtype) < 4) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " is ", DTypeName(inputs[i]->dtype), "; powers are of F32, F64, I64 and I32"));
    }
  }
  LS_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(inputs[0]->shape, inputs[1]->shape));
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

// Both outputs are like dY.
absl::StatusOr<std::vector<ValueInfo>> InferOperandGradients(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_ASSIGN_OR_RETURN(const std::vector<ValueInfo> y, InferBroadcast(inputs.subspan(1), inputs[1]->dtype));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], y[0], "dY"));
  return std::vector<ValueInfo>{*inputs[0], *inputs[0]};
}

// The exponent may be of another type than dY and A.
absl::StatusOr<std::vector<ValueInfo>> InferPowGrad(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_ASSIGN_OR_RETURN(const std::vector<ValueInfo> power, InferPow(node, inputs.subspan(1)));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], power[0], "dY"));
  return std::vector<ValueInfo>{*inputs[0], *inputs[0]};
}

absl::Status AddGradient(GradientBuilder& b) {
  for (size_t i : {0, 1}) {
    if (b.Needs(i)) {
      b.SetInputGradient(i, b.ReduceTo(absl::StrCat("d", i), b.OutputGradient(0), b.InputInfo(i).shape));
    }
  }
  return absl::OkStatus();
}

absl::Status SubGradient(GradientBuilder& b) {
  if (b.Needs(0)) b.SetInputGradient(0, b.ReduceTo("d0", b.OutputGradient(0), b.InputInfo(0).shape));
  if (b.Needs(1)) {
    const std::string reduced = b.ReduceTo("d1.reduced", b.OutputGradient(0), b.InputInfo(1).shape);
    b.SetInputGradient(1, b.Emit("d1", OpType::kScale, {reduced}, ScaleAttributes{-1.0}));
  }
  return absl::OkStatus();
}

absl::Status MulGradient(GradientBuilder& b) {
  for (size_t i : {0, 1}) {
    if (!b.Needs(i)) continue;
    const std::string suffix = absl::StrCat("d", i);
    const std::string full = b.Emit(suffix + ".full", OpType::kMul, {b.OutputGradient(0), b.Input(1 - i)});
    b.SetInputGradient(i, b.ReduceTo(suffix, full, b.InputInfo(i).shape));
  }
  return absl::OkStatus();
}

absl::Status DivGradient(GradientBuilder& b) {
  if (b.Needs(0)) {
    const std::string full = b.Emit("d0.full", OpType::kDiv, {b.OutputGradient(0), b.Input(1)});
    b.SetInputGradient(0, b.ReduceTo("d0", full, b.InputInfo(0).shape));
  }
  if (b.Needs(1)) {
    // -dY * (Y / B)
    const std::string slope = b.Emit("d1.slope", OpType::kDiv, {b.Output(0), b.Input(1)});
    const std::string full = b.Emit("d1.full", OpType::kMul, {b.OutputGradient(0), slope});
    const std::string reduced = b.ReduceTo("d1.reduced", full, b.InputInfo(1).shape);
    b.SetInputGradient(1, b.Emit("d1", OpType::kNeg, {reduced}));
  }
  return absl::OkStatus();
}

absl::Status ModGradient(GradientBuilder& b) {
  if (b.Needs(0)) b.SetInputGradient(0, b.ReduceTo("d0", b.OutputGradient(0), b.InputInfo(0).shape));
  if (b.Needs(1)) {
    // Y = A - n * B with whole n: -dY * n.
    const std::string multiple = b.Emit("d1.multiple", OpType::kSub, {b.Input(0), b.Output(0)});
    const std::string quotient = b.Emit("d1.quotient", OpType::kDiv, {multiple, b.Input(1)});
    const std::string n = b.Emit("d1.n", OpType::kRound, {quotient});
    const std::string full = b.Emit("d1.full", OpType::kMul, {b.OutputGradient(0), n});
    const std::string reduced = b.ReduceTo("d1.reduced", full, b.InputInfo(1).shape);
    b.SetInputGradient(1, b.Emit("d1", OpType::kNeg, {reduced}));
  }
  return absl::OkStatus();
}

absl::Status PowGradient(GradientBuilder& b) {
  const bool exponent = b.Needs(1) && IsFloating(b.InputInfo(1).dtype);
  std::vector<std::string> suffixes = {"d0.full"};
  if (exponent) suffixes.push_back("d1.full");
  const auto full = b.EmitMany("pow", OpType::kPowGrad, {b.OutputGradient(0), b.Input(0), b.Input(1)}, suffixes, {});
  if (b.Needs(0)) b.SetInputGradient(0, b.ReduceTo("d0", full[0], b.InputInfo(0).shape));
  if (!exponent) return absl::OkStatus();
  std::string reduced = b.ReduceTo("d1", full[1], b.InputInfo(1).shape);
  if (b.InputInfo(1).dtype != b.OutputInfo(0).dtype) {
    reduced = b.Emit("d1.cast", OpType::kCast, {reduced}, CastAttributes{b.InputInfo(1).dtype});
  }
  b.SetInputGradient(1, reduced);
  return absl::OkStatus();
}

// Y = op(op(op(A, B), C), ...): the partial results once more, then back through them.
template <OpType kOp, OpType kGrad>
absl::Status ExtremumGradient(GradientBuilder& b) {
  const size_t count = b.node().inputs.size();
  std::vector<std::string> partial = {b.Input(0)};
  for (size_t i = 1; i + 1 < count; ++i) {
    partial.push_back(b.Emit(absl::StrCat("partial.", i), kOp, {partial.back(), b.Input(i)}));
  }
  std::string gradient = b.OutputGradient(0);
  for (size_t i = count - 1; i > 0; --i) {
    const std::string& left = partial[i - 1];
    std::vector<std::string> suffixes = {absl::StrCat("left.", i)};
    if (b.Needs(i)) suffixes.push_back(absl::StrCat("right.", i));
    const auto full = b.EmitMany(absl::StrCat("pair.", i), kGrad, {gradient, left, b.Input(i)}, suffixes, {});
    if (b.Needs(i)) b.SetInputGradient(i, b.ReduceTo(absl::StrCat("d", i), full[1], b.InputInfo(i).shape));
    if (i == 1 && !b.Needs(0)) return absl::OkStatus();
    gradient = b.ReduceTo(absl::StrCat("dpartial", i), full[0], Shape(b.Info(left).shape));
  }
  b.SetInputGradient(0, gradient);
  return absl::OkStatus();
}

absl::Status ScaleGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kScale, {b.OutputGradient(0)}, b.node().attributes));
  return absl::OkStatus();
}

constexpr int kMostOperands = 64;

constexpr OpSchema Binary(OpType type, absl::Status (*gradient)(GradientBuilder&)) {
  return {type, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferBinary, gradient};
}

constexpr OpSchema Extremum(OpType type, absl::Status (*gradient)(GradientBuilder&)) {
  return {type, 1, kMostOperands, 1, 1, ParseNoAttributes, FormatNoAttributes, InferBinary, gradient};
}

constexpr OpSchema OperandGradients(OpType type) {
  return {type, 3, 3, 1, 2, ParseNoAttributes, FormatNoAttributes, InferOperandGradients, nullptr};
}

constexpr OpSchema kElementwiseFamily[] = {
    Binary(OpType::kAdd, AddGradient),
    Binary(OpType::kSub, SubGradient),
    Binary(OpType::kMul, MulGradient),
    Binary(OpType::kDiv, DivGradient),
    {OpType::kMod, 2, 2, 1, 1, ParseMod, FormatMod, InferMod, ModGradient},
    {OpType::kPow, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferPow, PowGradient},
    Extremum(OpType::kMin, ExtremumGradient<OpType::kMin, OpType::kMinGrad>),
    Extremum(OpType::kMax, ExtremumGradient<OpType::kMax, OpType::kMaxGrad>),
    {OpType::kScale, 1, 1, 1, 1, ParseScale, FormatScale, InferSameAsFirst, ScaleGradient},
    {OpType::kPowGrad, 3, 3, 1, 2, ParseNoAttributes, FormatNoAttributes, InferPowGrad, nullptr},
    OperandGradients(OpType::kMinGrad),
    OperandGradients(OpType::kMaxGrad),
};

}  // namespace

absl::Span<const OpSchema> ElementwiseFamily() { return kElementwiseFamily; }

}  // namespace lockstep
