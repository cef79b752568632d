// Softmax cross entropy of scores [N, C, d...] against labels [N, d...] (I32 or I64), with optional class weights [C].
// A label equal to ignore_index weighs nothing; every other label lies in [0, C).
//
//   SoftmaxCrossEntropyLoss(scores, labels, weights?) -> loss, log_prob?, statistics?
//       loss: [N, d...] for reduction none, else a scalar; mean divides by the sum of the weights of the labels
//       log_prob: log-softmax of the scores over axis 1, shape of the scores
//       statistics: [N, d..., 2], per label: the largest score m over the classes, and log(sum of e^(score - m))
//   lockstep.SoftmaxCrossEntropyLossGrad(dLoss, log_prob, labels, weights?) -> dScores
//   lockstep.SoftmaxCrossEntropyLossGrad(dLoss, scores, labels, weights?, statistics) -> dScores
//   NegativeLogLikelihoodLoss(log_prob, labels, weights?) -> loss       the same loss of log-softmaxes
//   lockstep.NegativeLogLikelihoodLossGrad(dLoss, log_prob, labels, weights?) -> dLog_prob
//   lockstep.LossWeights(labels, weights?) -> the weight of each label (1 without weights, 0 when ignored), or its sum;
//       element type: the attribute dtype; reduction mean does not exist here
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_CROSS_ENTROPY_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_CROSS_ENTROPY_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "common/tensor/dtype.h"

namespace lockstep {

struct OpSchema;

enum class Reduction : uint8_t { kNone, kSum, kMean };

struct CrossEntropyAttributes {
  Reduction reduction = Reduction::kMean;
  std::optional<int64_t> ignore_index;
  // Element type of what LossWeights returns; the other ops leave it.
  DType dtype = DType::kF32;
  friend bool operator==(const CrossEntropyAttributes&, const CrossEntropyAttributes&) = default;
};

absl::Span<const OpSchema> CrossEntropyFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_CROSS_ENTROPY_H_
