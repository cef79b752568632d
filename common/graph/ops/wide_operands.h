// Which operands of an op stay F32 when its other operands are BF16: statistics, scales and the like. An op with BF16
// operands means: widen them to F32, compute as for F32, round every result to the nearest BF16. A library's kernel
// that a plan names may round at further places inside (docs/design/0009).
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_WIDE_OPERANDS_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_WIDE_OPERANDS_H_

#include <cstddef>
#include <cstdint>

#include "common/graph/ops/op_type.h"

namespace lockstep {

// Bit i stands for input or output i.
struct WideOperands {
  uint8_t inputs = 0;
  uint8_t outputs = 0;

  bool input(size_t i) const { return (inputs >> i & 1) != 0; }
  bool output(size_t i) const { return (outputs >> i & 1) != 0; }
};

constexpr WideOperands WideOperandsOf(OpType op) {
  switch (op) {
    case OpType::kLayerNormalization:  // X, scale, bias -> Y, mean, inv_std
      return {.inputs = 0b110, .outputs = 0b110};
    case OpType::kLayerNormGrad:  // dY, X, scale, mean, inv_std, dSum -> dX, dScale, dBias
      return {.inputs = 0b11100, .outputs = 0b110};
    case OpType::kRmsNormalization:  // X, scale -> Y
      return {.inputs = 0b10, .outputs = 0};
    case OpType::kRmsNormGrad:  // dY, X, scale, dSum -> dX, dScale
      return {.inputs = 0b100, .outputs = 0b10};
    case OpType::kGroupNormalization:  // X, scale, bias -> Y
    case OpType::kInstanceNormalization:
      return {.inputs = 0b110, .outputs = 0};
    case OpType::kGroupNormGrad:  // dY, X, scale -> dX, dScale, dBias
      return {.inputs = 0b100, .outputs = 0b110};
    case OpType::kBatchNormalization:  // X, scale, bias, mean, var -> Y
      return {.inputs = 0b11110, .outputs = 0};
    case OpType::kBatchNormTraining:  // X, scale, bias -> Y, mean, inv_std, var
      return {.inputs = 0b110, .outputs = 0b1110};
    case OpType::kBatchNormGrad:        // dY, X, scale, mean, inv_std -> dX, dScale, dBias
    case OpType::kBatchNormFrozenGrad:  // dY, X, scale, mean, var -> the same
      return {.inputs = 0b11100, .outputs = 0b110};
    case OpType::kSoftmaxCrossEntropyLoss:  // scores, labels, weights -> loss, log_prob, statistics
      return {.inputs = 0b100, .outputs = 0b111};
    case OpType::kSoftmaxCrossEntropyLossGrad:  // dLoss, scores, labels, weights, statistics -> dScores
      return {.inputs = 0b11001, .outputs = 0};
    case OpType::kAttention:  // Q, K, V, mask, random -> Y, statistics
      return {.inputs = 0b1000, .outputs = 0b10};
    case OpType::kAttentionGrad:  // dY, Q, K, V, Y, statistics, mask, random -> dQ, dK, dV
      return {.inputs = 0b1100000, .outputs = 0};
    default:
      return {};
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_WIDE_OPERANDS_H_
