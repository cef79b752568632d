// Losses of a prediction against a target of the same shape and type, element by element, with d = prediction - target.
//
//   mse               d^2
//   l1                |d|                                       gradient 0 at d = 0
//   huber             d^2 / 2 where |d| <= delta, else delta * (|d| - delta / 2)
//   bce_with_logits   max(x, 0) - x * t + log(1 + exp(-|x|))    x the prediction, t the target in [0, 1]
//
//   lockstep.PointwiseLoss(prediction, target) -> loss                     element by element, or a scalar (sum, mean)
//   lockstep.PointwiseLossGrad(dLoss, prediction, target) -> dPrediction   targets get no gradient
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_POINTWISE_LOSS_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_POINTWISE_LOSS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/graph/ops/cross_entropy.h"

namespace lockstep {

enum class PointwiseLossKind : uint8_t { kMse, kL1, kHuber, kBceWithLogits };

struct PointwiseLossAttributes {
  PointwiseLossKind kind = PointwiseLossKind::kMse;
  Reduction reduction = Reduction::kMean;
  double delta = 1.0;  // huber only
  friend bool operator==(const PointwiseLossAttributes&, const PointwiseLossAttributes&) = default;
};

absl::Span<const OpSchema> PointwiseLossFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_POINTWISE_LOSS_H_
