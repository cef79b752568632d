#include "common/graph/ops/elementwise.h"

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

absl::StatusOr<std::vector<ValueInfo>> InferBinary(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckNumber(*inputs[0], "input 0"));
  if (inputs[0]->dtype != inputs[1]->dtype) {
    return absl::InvalidArgumentError(absl::StrCat("input 0 is ", DTypeName(inputs[0]->dtype), " and input 1 is ",
                                                   DTypeName(inputs[1]->dtype), "; both need the same type"));
  }
  LS_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(inputs[0]->shape, inputs[1]->shape));
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
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

absl::Status ScaleGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kScale, {b.OutputGradient(0)}, b.node().attributes));
  return absl::OkStatus();
}

constexpr OpSchema kFamily[] = {
    {OpType::kAdd, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferBinary, AddGradient},
    {OpType::kSub, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferBinary, SubGradient},
    {OpType::kMul, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferBinary, MulGradient},
    {OpType::kScale, 1, 1, 1, 1, ParseScale, FormatScale, InferSameAsFirst, ScaleGradient},
};

}  // namespace

absl::Span<const OpSchema> ElementwiseFamily() { return kFamily; }

}  // namespace lockstep
