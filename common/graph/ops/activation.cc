#include "common/graph/ops/activation.h"

#include "common/graph/ops/schema.h"

namespace lockstep {
namespace {

template <OpType kGrad>
absl::Status Gradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", kGrad, {b.OutputGradient(0), b.Output(0)}));
  return absl::OkStatus();
}

constexpr OpSchema Forward(OpType type, absl::Status (*gradient)(GradientBuilder&)) {
  return {type, 1, 1, 1, 1, ParseNoAttributes, FormatNoAttributes, InferSameAsFirst, gradient};
}

constexpr OpSchema Backward(OpType type) {
  return {type, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferSameAsFirst, nullptr};
}

constexpr OpSchema kFamily[] = {
    Forward(OpType::kRelu, Gradient<OpType::kReluGrad>),
    Forward(OpType::kSigmoid, Gradient<OpType::kSigmoidGrad>),
    Forward(OpType::kTanh, Gradient<OpType::kTanhGrad>),
    Backward(OpType::kReluGrad),
    Backward(OpType::kSigmoidGrad),
    Backward(OpType::kTanhGrad),
};

}  // namespace

absl::Span<const OpSchema> ActivationFamily() { return kFamily; }

}  // namespace lockstep
