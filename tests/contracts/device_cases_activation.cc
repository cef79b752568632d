// Activations and their gradients.
#include "tests/contracts/device_case_builder.h"

namespace lockstep {
namespace {

OpAttributes AttributesOf(OpType op, Dice& dice) {
  switch (op) {
    case OpType::kLeakyRelu:
    case OpType::kLeakyReluGrad:
    case OpType::kElu:
    case OpType::kEluGrad:
    case OpType::kSelu:
    case OpType::kSeluGrad:
    case OpType::kCelu:
    case OpType::kCeluGrad:
    case OpType::kHardSigmoid:
    case OpType::kHardSigmoidGrad:
    case OpType::kThresholdedRelu:
    case OpType::kShrink:
    case OpType::kThresholdedReluGrad:
    case OpType::kShrinkGrad:
      return ActivationAttributes{0.3, 0.7};
    case OpType::kGelu:
    case OpType::kGeluGrad:
      return GeluAttributes{dice.Flip()};
    case OpType::kClip:
    case OpType::kClipGrad:
      return dice.Flip() ? ClipAttributes{-0.25, 0.5} : ClipAttributes{.min = 0.1};
    default:
      return NoAttributes();
  }
}

void MakeForward(OpType op, Dice& dice, CaseBuilder& b) {
  const OpAttributes attributes = AttributesOf(op, dice);
  b.Op(op, {b.In(RandomShape(dice, 0, 4, 9))}, attributes);
}

void MakeBackward(OpType op, Dice& dice, CaseBuilder& b) {
  const OpAttributes attributes = AttributesOf(op, dice);
  const Shape shape = RandomShape(dice, 0, 4, 9);
  const std::string dy = b.In(shape);
  b.Op(op, {dy, b.In(shape)}, attributes);
}

void MakePRelu(OpType op, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 0, 4);
  std::vector<std::string> inputs = {b.In(shape)};
  if (op == OpType::kPReluGrad) inputs.push_back(b.In(shape));
  inputs.push_back(b.In(Broadcastable(dice, shape)));
  b.Op(op, inputs, NoAttributes(), op == OpType::kPReluGrad && dice.Flip() ? 2 : 1);
}

}  // namespace

bool MakeActivationCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase&) {
  switch (op) {
    case OpType::kRelu:
    case OpType::kSigmoid:
    case OpType::kTanh:
    case OpType::kLeakyRelu:
    case OpType::kElu:
    case OpType::kSelu:
    case OpType::kCelu:
    case OpType::kHardSigmoid:
    case OpType::kHardSwish:
    case OpType::kThresholdedRelu:
    case OpType::kShrink:
    case OpType::kSoftplus:
    case OpType::kSoftsign:
    case OpType::kMish:
    case OpType::kGelu:
    case OpType::kClip:
      MakeForward(op, dice, b);
      return true;
    case OpType::kReluGrad:
    case OpType::kSigmoidGrad:
    case OpType::kTanhGrad:
    case OpType::kLeakyReluGrad:
    case OpType::kEluGrad:
    case OpType::kSeluGrad:
    case OpType::kCeluGrad:
    case OpType::kHardSigmoidGrad:
    case OpType::kHardSwishGrad:
    case OpType::kThresholdedReluGrad:
    case OpType::kShrinkGrad:
    case OpType::kSoftsignGrad:
    case OpType::kMishGrad:
    case OpType::kGeluGrad:
    case OpType::kClipGrad:
      MakeBackward(op, dice, b);
      return true;
    case OpType::kPRelu:
    case OpType::kPReluGrad:
      MakePRelu(op, dice, b);
      return true;
    default:
      return false;
  }
}

}  // namespace lockstep
