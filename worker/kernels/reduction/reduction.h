// The reduced and kept dimensions of a reduction.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_REDUCTION_REDUCTION_H_
#define LOCKSTEP_WORKER_KERNELS_REDUCTION_REDUCTION_H_

#include <cstddef>
#include <cstdint>

#include "common/graph/ops/reduce.h"
#include "common/tensor/shape.h"
#include "worker/kernels/broadcast.h"

namespace lockstep::device {

[[gnu::always_inline]] inline bool IsReduced(const ReduceAttributes& attributes, size_t dimension, size_t rank) {
  bool reduced = attributes.axes.empty() && !attributes.noop_with_empty_axes;
  for (const int64_t axis : attributes.axes) {
    reduced = reduced || static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis) == dimension;
  }
  return reduced;
}

// `shape` with 1 in every reduced dimension: the result's shape with keep_dims, from which it broadcasts to `shape`.
inline Shape KeptShape(const ReduceAttributes& attributes, const Shape& shape) {
  Shape kept = shape;
  for (size_t i = 0; i < shape.size(); ++i) kept[i] = IsReduced(attributes, i, shape.size()) ? 1 : shape[i];
  return kept;
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_REDUCTION_REDUCTION_H_
