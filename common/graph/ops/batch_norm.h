// Batch normalisation over axis 1 of X [N, C, d...]; scale, bias, mean, var are [C].
//
//   BatchNormalization(X, scale, bias, mean, var) -> Y      with the given statistics when training_mode is false.
//       With training_mode true it stands for the batch's own statistics plus moving ones; the training graph then
//       holds BatchNormTraining, and evaluation runs with training_mode false.
//   lockstep.BatchNormTraining(X, scale, bias) -> Y, saved_mean, saved_inv_std, batch_var
//       statistics of this pass: mean and population variance over N, d..., inv_std = 1 / sqrt(var + epsilon);
//       batch_var is what moves the running variance: the population variance, or n / (n - 1) times it when
//       unbiased_running_var (PyTorch) and n > 1. Sums run in index order or in fixed blocks: the bits never depend on
//       the device's threads.
//   lockstep.BatchNormGrad(dY, X, scale, saved_mean, saved_inv_std) -> dX, dScale, dBias
//   lockstep.BatchNormFrozenGrad(dY, X, scale, mean, var) -> dX, dScale, dBias
//       of BatchNormalization with given statistics, an affine map of each channel; they get no gradient
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_BATCH_NORM_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_BATCH_NORM_H_

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct BatchNormAttributes {
  double epsilon = 1e-5;
  // ONNX's: running = momentum * running + (1 - momentum) * batch. PyTorch's is one minus this.
  double momentum = 0.9;
  bool training_mode = false;
  bool unbiased_running_var = false;
  friend bool operator==(const BatchNormAttributes&, const BatchNormAttributes&) = default;
};

absl::Span<const OpSchema> BatchNormFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_BATCH_NORM_H_
