// Index arithmetic of numpy's broadcasting.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_BROADCAST_H_
#define LOCKSTEP_WORKER_KERNELS_BROADCAST_H_

#include <cstdint>

#include "common/tensor/shape.h"

namespace lockstep::device {

// Where element `index` of a result of shape `to` comes from in an operand of shape `from`, both row-major. REQUIRES:
// `from` broadcasts to `to`.
inline int64_t BroadcastIndex(int64_t index, const Shape& to, const Shape& from) {
  int64_t source = 0;
  int64_t stride = 1;
  const size_t offset = to.size() - from.size();
  for (size_t axis = to.size(); axis-- > 0;) {
    const int64_t at = index % to[axis];
    index /= to[axis];
    if (axis < offset) continue;
    const int64_t extent = from[axis - offset];
    if (extent != 1) source += at * stride;
    stride *= extent;
  }
  return source;
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_BROADCAST_H_
