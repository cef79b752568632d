// Activations.
#include "tests/gradients/op_cases.h"

namespace lockstep {
namespace {

// Away from kinks at 0; between -4 and 4, so that both sides of every bend are met.
std::string Wide(CaseNumbers& dice, CaseWriter* writer) {
  Tensor x = dice.Distinct(RandomShape(dice, 0, 4));
  for (double& element : x.elements<double>()) element *= 3.9;
  return writer->Input(std::move(x));
}

template <OpType kOp>
GradientCase Plain(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = Wide(dice, &writer);
  return writer.Op(kOp, {x});
}

// alpha and beta in [0.1, 0.9): bends at 0, at alpha or where alpha * x + beta is 0 or 1.
template <OpType kOp>
GradientCase WithNumbers(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = Wide(dice, &writer);
  return writer.Op(kOp, {x}, ActivationAttributes{0.5 + 0.4 * dice.Unit(), 0.5 + 0.4 * dice.Unit()});
}

GradientCase PRelu(CaseNumbers& dice) {
  CaseWriter writer;
  Tensor x = dice.Distinct(RandomShape(dice, 0, 4));
  const Shape slope = Broadcastable(dice, x.shape());
  const std::string name = writer.Input(std::move(x), dice.Coin());
  return writer.Op(OpType::kPRelu, {name, writer.Input(dice.Uniform(slope))});
}

GradientCase Gelu(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = Wide(dice, &writer);
  return writer.Op(OpType::kGelu, {x}, GeluAttributes{dice.Coin()});
}

GradientCase Clip(CaseNumbers& dice) {
  CaseWriter writer;
  ClipAttributes clip;
  if (dice.Coin()) clip.min = -0.3 + dice.Unit();
  if (dice.Coin()) clip.max = 0.4 + dice.Unit();
  const std::string x = Wide(dice, &writer);
  return writer.Op(OpType::kClip, {x}, clip);
}

constexpr OpCase kActivation[] = {
    {OpType::kRelu, Plain<OpType::kRelu>},
    {OpType::kSigmoid, Plain<OpType::kSigmoid>},
    {OpType::kTanh, Plain<OpType::kTanh>},
    {OpType::kLeakyRelu, WithNumbers<OpType::kLeakyRelu>},
    {OpType::kPRelu, PRelu},
    {OpType::kElu, WithNumbers<OpType::kElu>},
    {OpType::kSelu, WithNumbers<OpType::kSelu>},
    {OpType::kCelu, WithNumbers<OpType::kCelu>},
    {OpType::kHardSigmoid, WithNumbers<OpType::kHardSigmoid>},
    {OpType::kHardSwish, Plain<OpType::kHardSwish>},
    {OpType::kThresholdedRelu, WithNumbers<OpType::kThresholdedRelu>},
    {OpType::kShrink, WithNumbers<OpType::kShrink>},
    {OpType::kSoftplus, Plain<OpType::kSoftplus>},
    {OpType::kSoftsign, Plain<OpType::kSoftsign>},
    {OpType::kMish, Plain<OpType::kMish>},
    {OpType::kGelu, Gelu},
    {OpType::kClip, Clip},
};

}  // namespace

absl::Span<const OpCase> ActivationCases() { return kActivation; }

}  // namespace lockstep
