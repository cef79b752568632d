// Element-wise arithmetic with multidirectional (numpy) broadcasting.
//
//   Add(A, B), Sub(A, B), Mul(A, B)        floating or integers, which wrap around; gradients of the former
//   lockstep.Scale(X) -> X * factor        factor is rounded to the element type first
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_ELEMENTWISE_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_ELEMENTWISE_H_

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct ScaleAttributes {
  double factor = 1.0;
  friend bool operator==(const ScaleAttributes&, const ScaleAttributes&) = default;
};

absl::Span<const OpSchema> ElementwiseFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_ELEMENTWISE_H_
