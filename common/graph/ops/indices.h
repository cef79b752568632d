// The shape checks that gather and scatter ops make of their indices.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_INDICES_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_INDICES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/tensor/shape.h"

namespace lockstep {

// For GatherElements and ScatterElements: OK when `indices` has the rank of `from` and, except along `axis`, no
// dimension longer than that of `from`. InvalidArgument otherwise.
absl::Status CheckElementIndices(const Shape& from, const Shape& indices, int64_t axis);

// For GatherND and ScatterND: OK when `indices` and `from` share their first `batch_dims` dimensions, and the last
// dimension of `indices` holds at least one coordinate and at most as many as `from` has further dimensions.
// InvalidArgument otherwise.
absl::Status CheckCoordinates(const Shape& from, const Shape& indices, int64_t batch_dims);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_INDICES_H_
