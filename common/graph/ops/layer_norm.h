// Normalisation over the trailing dimensions of X, from `axis` on; scale and bias have the shape of those dimensions.
//
//   LayerNormalization(X, scale, bias?) -> Y, mean?, inv_std?
//       (X - mean) * inv_std * scale + bias; inv_std = 1 / sqrt(var + epsilon), var the population variance. mean and
//       inv_std have X's rank, with 1 in every normalised dimension. The training graph asks for all three outputs.
//   RMSNormalization(X, scale) -> Y
//       X * scale / sqrt(mean of X^2 + epsilon)
//   lockstep.LayerNormGrad(dY, X, scale, mean, inv_std, dSum?) -> dX, dScale, dBias
//       dSum: the gradient that reaches X on another path; it is added to dX
//   lockstep.RMSNormGrad(dY, X, scale, dSum?) -> dX, dScale
//       recomputes the root mean square: one pass over a row, which is read anyway, gives both sums that it needs
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_LAYER_NORM_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_LAYER_NORM_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct LayerNormAttributes {
  int64_t axis = -1;  // may be negative
  double epsilon = 1e-5;
  friend bool operator==(const LayerNormAttributes&, const LayerNormAttributes&) = default;
};

absl::Span<const OpSchema> LayerNormFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_LAYER_NORM_H_
