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

using InferUnary = absl::StatusOr<std::vector<ValueInfo>> (*)(const Node&, InputInfos);
using UnaryGradient = absl::Status (*)(GradientBuilder&);

constexpr OpSchema UnaryRow(OpType type, InferUnary infer, UnaryGradient gradient) {
  return {type, 1, 1, 1, 1, ParseNoAttributes, FormatNoAttributes, infer, gradient};
}

// dX from dY and X.
constexpr OpSchema Slope(OpType type) {
  return {type, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferSameAsFirst, nullptr};
}

// No gradient goes through an Identity: what reads files leaves out those that only name a value again, so that one
// that stands in a graph is PyTorch's detach().
constexpr OpSchema kUnaryFamily[] = {
    UnaryRow(OpType::kNeg, InferNumber, NegGradient),
    UnaryRow(OpType::kAbs, InferNumber, AbsGradient),
    UnaryRow(OpType::kSign, InferNumber, FlatGradient),
    UnaryRow(OpType::kReciprocal, InferSameAsFirst, ReciprocalGradient),
    UnaryRow(OpType::kSqrt, InferSameAsFirst, SqrtGradient),
    UnaryRow(OpType::kExp, InferSameAsFirst, ExpGradient),
    UnaryRow(OpType::kLog, InferSameAsFirst, LogGradient),
    UnaryRow(OpType::kErf, InferSameAsFirst, GradientFromInput<OpType::kErfGrad>),
    UnaryRow(OpType::kSin, InferSameAsFirst, SinGradient),
    UnaryRow(OpType::kCos, InferSameAsFirst, CosGradient),
    UnaryRow(OpType::kTan, InferSameAsFirst, TanGradient),
    UnaryRow(OpType::kAsin, InferSameAsFirst, GradientFromInput<OpType::kAsinGrad>),
    UnaryRow(OpType::kAcos, InferSameAsFirst, AcosGradient),
    UnaryRow(OpType::kAtan, InferSameAsFirst, GradientFromInput<OpType::kAtanGrad>),
    UnaryRow(OpType::kSinh, InferSameAsFirst, HyperbolicGradient<OpType::kCosh>),
    UnaryRow(OpType::kCosh, InferSameAsFirst, HyperbolicGradient<OpType::kSinh>),
    UnaryRow(OpType::kAsinh, InferSameAsFirst, GradientFromInput<OpType::kAsinhGrad>),
    UnaryRow(OpType::kAcosh, InferSameAsFirst, GradientFromInput<OpType::kAcoshGrad>),
    UnaryRow(OpType::kAtanh, InferSameAsFirst, GradientFromInput<OpType::kAtanhGrad>),
    UnaryRow(OpType::kFloor, InferSameAsFirst, FlatGradient),
    UnaryRow(OpType::kCeil, InferSameAsFirst, FlatGradient),
    UnaryRow(OpType::kRound, InferSameAsFirst, FlatGradient),
    UnaryRow(OpType::kIdentity, InferAnything, nullptr),
    Slope(OpType::kErfGrad),
    Slope(OpType::kAsinGrad),
    Slope(OpType::kAtanGrad),
    Slope(OpType::kAsinhGrad),
    Slope(OpType::kAcoshGrad),
    Slope(OpType::kAtanhGrad),
};

}  // namespace

absl::Span<const OpSchema> UnaryFamily() { return kUnaryFamily; }

}  // namespace lockstep
