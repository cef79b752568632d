// Which coordinates a reduction keeps.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_REDUCTION_REDUCTION_H_
#define LOCKSTEP_WORKER_KERNELS_REDUCTION_REDUCTION_H_

#include "common/graph/ops/reduce.h"
#include "common/tensor/shape.h"
#include "worker/kernels/broadcast.h"

namespace lockstep::device {

// `shape` with 1 in every reduced dimension: what the result broadcasts from, whatever keep_dims says.
[[gnu::always_inline]] inline Shape KeptShape(const ReduceAttributes& attributes, const Shape& shape) {
  Shape kept = shape;
  if (attributes.axes.empty()) {
    if (!attributes.noop_with_empty_axes) kept.assign(shape.size(), 1);
    return kept;
  }
  for (const int64_t axis : attributes.axes) {
    kept[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)] = 1;
  }
  return kept;
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_REDUCTION_REDUCTION_H_
