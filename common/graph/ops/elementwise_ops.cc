#include "common/graph/ops/elementwise_ops.h"

namespace lockstep {
namespace {

bool IsActivation(OpType op) {
  switch (op) {
    case OpType::kRelu:
    case OpType::kSigmoid:
    case OpType::kTanh:
    case OpType::kReluGrad:
    case OpType::kSigmoidGrad:
    case OpType::kTanhGrad:
    case OpType::kLeakyRelu:
    case OpType::kPRelu:
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
      return true;
    default:
      return false;
  }
}

}  // namespace

bool IsElementwise(OpType op) {
  switch (op) {
    case OpType::kAdd:
    case OpType::kSub:
    case OpType::kMul:
    case OpType::kDiv:
    case OpType::kMod:
    case OpType::kPow:
    case OpType::kMin:
    case OpType::kMax:
    case OpType::kNeg:
    case OpType::kAbs:
    case OpType::kSign:
    case OpType::kReciprocal:
    case OpType::kSqrt:
    case OpType::kExp:
    case OpType::kLog:
    case OpType::kErf:
    case OpType::kSin:
    case OpType::kCos:
    case OpType::kTan:
    case OpType::kAsin:
    case OpType::kAcos:
    case OpType::kAtan:
    case OpType::kSinh:
    case OpType::kCosh:
    case OpType::kAsinh:
    case OpType::kAcosh:
    case OpType::kAtanh:
    case OpType::kFloor:
    case OpType::kCeil:
    case OpType::kRound:
    case OpType::kCast:
    case OpType::kWhere:
    case OpType::kScale:
    case OpType::kErfGrad:
    case OpType::kAsinGrad:
    case OpType::kAtanGrad:
    case OpType::kAsinhGrad:
    case OpType::kAcoshGrad:
    case OpType::kAtanhGrad:
    case OpType::kDropoutTraining:
    case OpType::kDropoutGrad:
      return true;
    default:
      return IsActivation(op);
  }
}

}  // namespace lockstep
