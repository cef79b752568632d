#include "common/graph/ops/unary.h"

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<std::vector<ValueInfo>> InferNumber(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckNumber(*inputs[0], "X"));
  if (node.op == OpType::kNeg && inputs[0]->dtype == DType::kU8) {
    return absl::InvalidArgumentError("X is U8, which has no negative numbers. Cast it to a signed type");
  }
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::StatusOr<std::vector<ValueInfo>> InferAnything(const Node&, InputInfos inputs) {
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::Status NegGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kNeg, {b.OutputGradient(0)}));
  return absl::OkStatus();
}

absl::Status AbsGradient(GradientBuilder& b) {
  const std::string sign = b.Emit("d0.sign", OpType::kSign, {b.Input(0)});
  b.SetInputGradient(0, b.Emit("d0", OpType::kMul, {b.OutputGradient(0), sign}));
  return absl::OkStatus();
}

absl::Status ReciprocalGradient(GradientBuilder& b) {
  const std::string square = b.Emit("d0.square", OpType::kMul, {b.Output(0), b.Output(0)});
  const std::string product = b.Emit("d0.product", OpType::kMul, {b.OutputGradient(0), square});
  b.SetInputGradient(0, b.Emit("d0", OpType::kNeg, {product}));
  return absl::OkStatus();
}

absl::Status SqrtGradient(GradientBuilder& b) {
  const std::string quotient = b.Emit("d0.quotient", OpType::kDiv, {b.OutputGradient(0), b.Output(0)});
  b.SetInputGradient(0, b.Emit("d0", OpType::kScale, {quotient}, ScaleAttributes{0.5}));
  return absl::OkStatus();
}

absl::Status ExpGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kMul, {b.OutputGradient(0), b.Output(0)}));
  return absl::OkStatus();
}

absl::Status LogGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kDiv, {b.OutputGradient(0), b.Input(0)}));
  return absl::OkStatus();
}

absl::Status SinGradient(GradientBuilder& b) {
  const std::string cosine = b.Emit("d0.cosine", OpType::kCos, {b.Input(0)});
  b.SetInputGradient(0, b.Emit("d0", OpType::kMul, {b.OutputGradient(0), cosine}));
  return absl::OkStatus();
}

absl::Status CosGradient(GradientBuilder& b) {
  const std::string sine = b.Emit("d0.sine", OpType::kSin, {b.Input(0)});
  const std::string product = b.Emit("d0.product", OpType::kMul, {b.OutputGradient(0), sine});
  b.SetInputGradient(0, b.Emit("d0", OpType::kNeg, {product}));
  return absl::OkStatus();
}

absl::Status TanGradient(GradientBuilder& b) {
  const std::string square = b.Emit("d0.square", OpType::kMul, {b.Output(0), b.Output(0)});
  const std::string product = b.Emit("d0.product", OpType::kMul, {b.OutputGradient(0), square});
  b.SetInputGradient(0, b.Emit("d0", OpType::kAdd, {b.OutputGradient(0), product}));
  return absl::OkStatus();
}

// Sinh and Cosh are each other's slope.
template <OpType kSlope>
absl::Status HyperbolicGradient(GradientBuilder& b) {
  const std::string slope = b.Emit("d0.slope", kSlope, {b.Input(0)});
  b.SetInputGradient(0, b.Emit("d0", OpType::kMul, {b.OutputGradient(0), slope}));
  return absl::OkStatus();
}

template <OpType kGrad>
absl::Status GradientFromInput(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", kGrad, {b.OutputGradient(0), b.Input(0)}));
  return absl::OkStatus();
}

absl::Status AcosGradient(GradientBuilder& b) {
  const std::string asin = b.Emit("d0.asin", OpType::kAsinGrad, {b.OutputGradient(0), b.Input(0)});
  b.SetInputGradient(0, b.Emit("d0", OpType::kNeg, {asin}));
  return absl::OkStatus();
}

// Steps are flat: the loss does not move with X.
absl::Status FlatGradient(GradientBuilder&) { return absl::OkStatus(); }

using Infer = absl::StatusOr<std::vector<ValueInfo>> (*)(const Node&, InputInfos);
using Gradient = absl::Status (*)(GradientBuilder&);

constexpr OpSchema Row(OpType type, Infer infer, Gradient gradient) {
  return {type, 1, 1, 1, 1, ParseNoAttributes, FormatNoAttributes, infer, gradient};
}

// dX from dY and X.
constexpr OpSchema Slope(OpType type) {
  return {type, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferSameAsFirst, nullptr};
}

// No gradient goes through an Identity: what reads files leaves out those that only name a value again, so that one
// that stands in a graph is PyTorch's detach().
constexpr OpSchema kFamily[] = {
    Row(OpType::kNeg, InferNumber, NegGradient),
    Row(OpType::kAbs, InferNumber, AbsGradient),
    Row(OpType::kSign, InferNumber, FlatGradient),
    Row(OpType::kReciprocal, InferSameAsFirst, ReciprocalGradient),
    Row(OpType::kSqrt, InferSameAsFirst, SqrtGradient),
    Row(OpType::kExp, InferSameAsFirst, ExpGradient),
    Row(OpType::kLog, InferSameAsFirst, LogGradient),
    Row(OpType::kErf, InferSameAsFirst, GradientFromInput<OpType::kErfGrad>),
    Row(OpType::kSin, InferSameAsFirst, SinGradient),
    Row(OpType::kCos, InferSameAsFirst, CosGradient),
    Row(OpType::kTan, InferSameAsFirst, TanGradient),
    Row(OpType::kAsin, InferSameAsFirst, GradientFromInput<OpType::kAsinGrad>),
    Row(OpType::kAcos, InferSameAsFirst, AcosGradient),
    Row(OpType::kAtan, InferSameAsFirst, GradientFromInput<OpType::kAtanGrad>),
    Row(OpType::kSinh, InferSameAsFirst, HyperbolicGradient<OpType::kCosh>),
    Row(OpType::kCosh, InferSameAsFirst, HyperbolicGradient<OpType::kSinh>),
    Row(OpType::kAsinh, InferSameAsFirst, GradientFromInput<OpType::kAsinhGrad>),
    Row(OpType::kAcosh, InferSameAsFirst, GradientFromInput<OpType::kAcoshGrad>),
    Row(OpType::kAtanh, InferSameAsFirst, GradientFromInput<OpType::kAtanhGrad>),
    Row(OpType::kFloor, InferSameAsFirst, FlatGradient),
    Row(OpType::kCeil, InferSameAsFirst, FlatGradient),
    Row(OpType::kRound, InferSameAsFirst, FlatGradient),
    Row(OpType::kIdentity, InferAnything, nullptr),
    Slope(OpType::kErfGrad),
    Slope(OpType::kAsinGrad),
    Slope(OpType::kAtanGrad),
    Slope(OpType::kAsinhGrad),
    Slope(OpType::kAcoshGrad),
    Slope(OpType::kAtanhGrad),
};

}  // namespace

absl::Span<const OpSchema> UnaryFamily() { return kFamily; }

}  // namespace lockstep
