// Normalisation of groups of channels of X [N, C, d...]; scale and bias are [C].
//
//   GroupNormalization(X, scale, bias) -> Y          mean and population variance over C / num_groups channels and d...
//   InstanceNormalization(X, scale, bias) -> Y       the same, each channel a group; num_groups is 0
//       Y = (X - mean) / sqrt(var + epsilon) * scale + bias
//   lockstep.GroupNormGrad(dY, X, scale) -> dX, dScale, dBias
//       recomputes the statistics; num_groups 0 stands for C
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_GROUP_NORM_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_GROUP_NORM_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct GroupNormAttributes {
  int64_t num_groups = 0;
  double epsilon = 1e-5;
  friend bool operator==(const GroupNormAttributes&, const GroupNormAttributes&) = default;
};

absl::Span<const OpSchema> GroupNormFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_GROUP_NORM_H_
