// The source indices of a padded tensor.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_PADDING_SOURCE_H_
#define LOCKSTEP_WORKER_KERNELS_PADDING_SOURCE_H_

#include <cstdint>

#include "common/graph/ops/pad.h"
#include "common/tensor/shape.h"

namespace lockstep::device {

// The index, in X of shape `from`, of the source of element `index` of the padded tensor of shape `to`; -1 for the
// constant. Both are row-major.
inline int64_t PadSource(const PadAttributes& pad, int64_t index, const Shape& to, const Shape& from) {
  const auto rank = static_cast<int64_t>(to.size());
  int64_t source = 0;
  int64_t stride = 1;
  for (size_t axis = to.size(); axis-- > 0;) {
    const PadRange range = pad.RangeOf(static_cast<int64_t>(axis), rank);
    const int64_t at = pad.Source(index % to[axis], range, from[axis]);
    if (at < 0) return -1;
    source += at * stride;
    stride *= from[axis];
    index /= to[axis];
  }
  return source;
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_PADDING_SOURCE_H_
