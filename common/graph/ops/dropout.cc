#include "common/graph/ops/dropout.h"

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseDropout(const RawAttributes& raw) {
  DropoutAttributes dropout;
  int64_t stream = 0;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Float("ratio", &dropout.ratio)
                         .Bool("training_mode", &dropout.training_mode)
                         .Int("stream", &stream)
                         .Finish());
  if (!(dropout.ratio >= 0 && dropout.ratio < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("ratio ", dropout.ratio, " is outside of [0, 1)"));
  }
  dropout.stream = static_cast<uint64_t>(stream);
  return OpAttributes(dropout);
}

RawAttributes FormatDropout(const OpAttributes& attributes) {
  const auto& dropout = std::get<DropoutAttributes>(attributes);
  return {{"ratio", dropout.ratio},
          {"training_mode", int64_t{dropout.training_mode}},
          {"stream", static_cast<int64_t>(dropout.stream)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferDropout(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "X"));
  if (inputs[1] != nullptr) LS_RETURN_IF_ERROR(CheckLike(*inputs[1], *inputs[0], "dropped"));
  return std::vector<ValueInfo>{*inputs[0], {DType::kBool, inputs[0]->shape}};
}

absl::StatusOr<std::vector<ValueInfo>> InferDropoutTraining(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "X"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], {DType::kI64, {4}}, "random"));
  return std::vector<ValueInfo>{*inputs[0], {DType::kBool, inputs[0]->shape}};
}

absl::StatusOr<std::vector<ValueInfo>> InferDropoutGrad(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], {DType::kBool, inputs[0]->shape}, "mask"));
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::Status DropoutGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("dX", OpType::kDropoutGrad, {b.OutputGradient(0), b.Output(1)}, b.node().attributes));
  return absl::OkStatus();
}

// Outside of training: where the mask is read the op is still there.
absl::Status IdentityGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.OutputGradient(0));
  return absl::OkStatus();
}

constexpr OpSchema kDropoutFamily[] = {
    {OpType::kDropout, 1, 2, 1, 2, ParseDropout, FormatDropout, InferDropout, IdentityGradient},
    {OpType::kDropoutTraining, 2, 2, 2, 2, ParseDropout, FormatDropout, InferDropoutTraining, DropoutGradient},
    {OpType::kDropoutGrad, 2, 2, 1, 1, ParseDropout, FormatDropout, InferDropoutGrad, nullptr},
};

}  // namespace

absl::Span<const OpSchema> DropoutFamily() { return kDropoutFamily; }

}  // namespace lockstep
