#include "common/graph/ops/activation.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// ONNX's defaults and names; `beta_name` is null for ops that have only one number.
struct Defaults {
  double alpha;
  double beta;
  const char* beta_name;
  const char* alpha_name = "alpha";
};

constexpr Defaults DefaultsOf(OpType type) {
  switch (type) {
    case OpType::kLeakyRelu:
      return {0.01f, 0.0, nullptr};
    case OpType::kSelu:
      return {1.67326319217681884765625, 1.05070102214813232421875, "gamma"};
    case OpType::kHardSigmoid:
      return {0.2f, 0.5, "beta"};
    case OpType::kShrink:
      return {0.5, 0.0, "bias", "lambd"};
    default:  // Elu, Celu, ThresholdedRelu
      return {1.0, 0.0, nullptr};
  }
}

template <OpType kOp>
absl::StatusOr<OpAttributes> ParseNumbers(const RawAttributes& raw) {
  constexpr Defaults kDefaults = DefaultsOf(kOp);
  ActivationAttributes numbers{kDefaults.alpha, kDefaults.beta};
  AttributeReader reader(raw);
  reader.Float(kDefaults.alpha_name, &numbers.alpha);
  if (kDefaults.beta_name != nullptr) reader.Float(kDefaults.beta_name, &numbers.beta);
  LS_RETURN_IF_ERROR(reader.Finish());
  if (kOp == OpType::kCelu && !(numbers.alpha > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("alpha is ", numbers.alpha, "; it has to be above 0"));
  }
  return OpAttributes(numbers);
}

template <OpType kOp>
RawAttributes FormatNumbers(const OpAttributes& attributes) {
  constexpr Defaults kDefaults = DefaultsOf(kOp);
  const auto& numbers = std::get<ActivationAttributes>(attributes);
  RawAttributes raw = {{kDefaults.alpha_name, numbers.alpha}};
  if (kDefaults.beta_name != nullptr) raw.emplace(kDefaults.beta_name, numbers.beta);
  return raw;
}

absl::StatusOr<OpAttributes> ParseGelu(const RawAttributes& raw) {
  std::string approximate = "none";
  LS_RETURN_IF_ERROR(AttributeReader(raw).String("approximate", &approximate).Finish());
  if (approximate != "none" && approximate != "tanh") {
    return absl::InvalidArgumentError(absl::StrCat("approximate '", approximate, "' is neither none nor tanh"));
  }
  return OpAttributes(GeluAttributes{approximate == "tanh"});
}

RawAttributes FormatGelu(const OpAttributes& attributes) {
  return {{"approximate", std::string(std::get<GeluAttributes>(attributes).tanh ? "tanh" : "none")}};
}

absl::StatusOr<OpAttributes> ParseClip(const RawAttributes& raw) {
  ClipAttributes clip;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Float("min", &clip.min).Float("max", &clip.max).Finish());
  if (std::isnan(clip.min) || std::isnan(clip.max)) return absl::InvalidArgumentError("a bound is not a number");
  return OpAttributes(clip);
}

// A bound that is not there is left out.
RawAttributes FormatClip(const OpAttributes& attributes) {
  const auto& clip = std::get<ClipAttributes>(attributes);
  RawAttributes raw;
  if (clip.min != ClipAttributes().min) raw.emplace("min", clip.min);
  if (clip.max != ClipAttributes().max) raw.emplace("max", clip.max);
  return raw;
}

absl::StatusOr<std::vector<ValueInfo>> InferClip(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckNumber(*inputs[0], "X"));
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::Status CheckSlope(const ValueInfo& x, const ValueInfo& slope) {
  LS_RETURN_IF_ERROR(CheckFloating(x, "X"));
  LS_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(x.shape, slope.shape));
  return CheckLike({slope.dtype, shape}, x, "X with the slope broadcast to it");
}

absl::StatusOr<std::vector<ValueInfo>> InferPRelu(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckSlope(*inputs[0], *inputs[1]));
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::StatusOr<std::vector<ValueInfo>> InferPReluGrad(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckSlope(*inputs[1], *inputs[2]));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], *inputs[1], "dY"));
  return std::vector<ValueInfo>{*inputs[0], *inputs[0]};
}

template <OpType kGrad>
absl::Status FromOutput(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", kGrad, {b.OutputGradient(0), b.Output(0)}));
  return absl::OkStatus();
}

template <OpType kGrad>
absl::Status FromInput(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", kGrad, {b.OutputGradient(0), b.Input(0)}, b.node().attributes));
  return absl::OkStatus();
}

absl::Status PReluGradient(GradientBuilder& b) {
  std::vector<std::string> suffixes = {"d0"};
  if (b.Needs(1)) suffixes.push_back("d1.full");
  const auto full =
      b.EmitMany("prelu", OpType::kPReluGrad, {b.OutputGradient(0), b.Input(0), b.Input(1)}, suffixes, {});
  if (b.Needs(0)) b.SetInputGradient(0, full[0]);
  if (b.Needs(1)) b.SetInputGradient(1, b.ReduceTo("d1", full[1], b.InputInfo(1).shape));
  return absl::OkStatus();
}

absl::Status SoftplusGradient(GradientBuilder& b) {
  const std::string slope = b.Emit("d0.slope", OpType::kSigmoid, {b.Input(0)});
  b.SetInputGradient(0, b.Emit("d0", OpType::kMul, {b.OutputGradient(0), slope}));
  return absl::OkStatus();
}

using Gradient = absl::Status (*)(GradientBuilder&);

constexpr OpSchema Forward(OpType type, Gradient gradient) {
  return {type, 1, 1, 1, 1, ParseNoAttributes, FormatNoAttributes, InferSameAsFirst, gradient};
}

constexpr OpSchema Backward(OpType type) {
  return {type, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferSameAsFirst, nullptr};
}

template <OpType kOp, OpType kGrad>
constexpr OpSchema ForwardWithNumbers() {
  return {kOp, 1, 1, 1, 1, ParseNumbers<kOp>, FormatNumbers<kOp>, InferSameAsFirst, FromInput<kGrad>};
}

template <OpType kOp, OpType kGrad>
constexpr OpSchema BackwardWithNumbers() {
  return {kGrad, 2, 2, 1, 1, ParseNumbers<kOp>, FormatNumbers<kOp>, InferSameAsFirst, nullptr};
}

constexpr OpSchema kActivationFamily[] = {
    Forward(OpType::kRelu, FromOutput<OpType::kReluGrad>),
    Forward(OpType::kSigmoid, FromOutput<OpType::kSigmoidGrad>),
    Forward(OpType::kTanh, FromOutput<OpType::kTanhGrad>),
    ForwardWithNumbers<OpType::kLeakyRelu, OpType::kLeakyReluGrad>(),
    {OpType::kPRelu, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferPRelu, PReluGradient},
    ForwardWithNumbers<OpType::kElu, OpType::kEluGrad>(),
    ForwardWithNumbers<OpType::kSelu, OpType::kSeluGrad>(),
    ForwardWithNumbers<OpType::kCelu, OpType::kCeluGrad>(),
    ForwardWithNumbers<OpType::kHardSigmoid, OpType::kHardSigmoidGrad>(),
    Forward(OpType::kHardSwish, FromInput<OpType::kHardSwishGrad>),
    ForwardWithNumbers<OpType::kThresholdedRelu, OpType::kThresholdedReluGrad>(),
    ForwardWithNumbers<OpType::kShrink, OpType::kShrinkGrad>(),
    Forward(OpType::kSoftplus, SoftplusGradient),
    Forward(OpType::kSoftsign, FromInput<OpType::kSoftsignGrad>),
    Forward(OpType::kMish, FromInput<OpType::kMishGrad>),
    {OpType::kGelu, 1, 1, 1, 1, ParseGelu, FormatGelu, InferSameAsFirst, FromInput<OpType::kGeluGrad>},
    {OpType::kClip, 1, 1, 1, 1, ParseClip, FormatClip, InferClip, FromInput<OpType::kClipGrad>},
    Backward(OpType::kReluGrad),
    Backward(OpType::kSigmoidGrad),
    Backward(OpType::kTanhGrad),
    BackwardWithNumbers<OpType::kLeakyRelu, OpType::kLeakyReluGrad>(),
    {OpType::kPReluGrad, 3, 3, 1, 2, ParseNoAttributes, FormatNoAttributes, InferPReluGrad, nullptr},
    BackwardWithNumbers<OpType::kElu, OpType::kEluGrad>(),
    BackwardWithNumbers<OpType::kSelu, OpType::kSeluGrad>(),
    BackwardWithNumbers<OpType::kCelu, OpType::kCeluGrad>(),
    BackwardWithNumbers<OpType::kHardSigmoid, OpType::kHardSigmoidGrad>(),
    Backward(OpType::kHardSwishGrad),
    BackwardWithNumbers<OpType::kThresholdedRelu, OpType::kThresholdedReluGrad>(),
    BackwardWithNumbers<OpType::kShrink, OpType::kShrinkGrad>(),
    Backward(OpType::kSoftsignGrad),
    Backward(OpType::kMishGrad),
    {OpType::kGeluGrad, 2, 2, 1, 1, ParseGelu, FormatGelu, InferSameAsFirst, nullptr},
    {OpType::kClipGrad, 2, 2, 1, 1, ParseClip, FormatClip, InferSameAsFirst, nullptr},
};

}  // namespace

absl::Span<const OpSchema> ActivationFamily() { return kActivationFamily; }

}  // namespace lockstep
