// Softmax and its logarithm along one axis.
//
//   Softmax(X) -> Y, LogSoftmax(X) -> Y
//   lockstep.SoftmaxGrad(dY, Y) -> dX         Y * (dY - sum over the axis of dY * Y)
//   lockstep.LogSoftmaxGrad(dY, Y) -> dX      dY - e^Y * sum over the axis of dY
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_SOFTMAX_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_SOFTMAX_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct SoftmaxAttributes {
  int64_t axis = -1;  // may be negative
  friend bool operator==(const SoftmaxAttributes&, const SoftmaxAttributes&) = default;
};

absl::Span<const OpSchema> SoftmaxFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_SOFTMAX_H_
