// Division by the norm along one axis.
//
//   LpNormalization(X) -> Y           X over its sum of magnitudes (p 1) or the root of its sum of squares (p 2);
//                                     0 where that is 0
//   lockstep.LpNormGrad(dY, X) -> dX  0 where the norm is 0
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_LP_NORM_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_LP_NORM_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct LpNormAttributes {
  int64_t axis = -1;  // may be negative
  int64_t p = 2;      // 1 or 2
  friend bool operator==(const LpNormAttributes&, const LpNormAttributes&) = default;
};

absl::Span<const OpSchema> LpNormFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_LP_NORM_H_
