// What the gathering and the scattering ops ask of their indices.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_INDICES_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_INDICES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/tensor/shape.h"

namespace lockstep {

// Of GatherElements and ScatterElements: the rank of the tensor, and beside `axis` no dimension longer than there.
// InvalidArgument otherwise.
absl::Status CheckElementIndices(const Shape& from, const Shape& indices, int64_t axis);

// Of GatherND and ScatterND: `batch_dims` dimensions in common, and in the last one 1 to as many coordinates as the
// tensor has dimensions left. InvalidArgument otherwise.
absl::Status CheckCoordinates(const Shape& from, const Shape& indices, int64_t batch_dims);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_INDICES_H_
