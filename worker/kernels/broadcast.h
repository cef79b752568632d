// Index arithmetic of numpy's broadcasting.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_BROADCAST_H_
#define LOCKSTEP_WORKER_KERNELS_BROADCAST_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/tensor/shape.h"

namespace lockstep::device {

// The index, in an operand of shape `from`, of the element that broadcasts to element `index` of a result of shape
// `to`; both are row-major. REQUIRES: `from` broadcasts to `to`.
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

// Iterates over BroadcastIndex for all elements of `to` in order, without divisions.
class BroadcastCursor {
 public:
  // REQUIRES: `from` broadcasts to `to`; `to` has at most kMostDims dimensions, which holds for all tensors of graphs.
  BroadcastCursor(const Shape& to, const Shape& from) : dims_(to.size()) {
    int64_t step = 1;
    const size_t missing = to.size() - from.size();
    for (size_t d = to.size(); d-- > 0;) {
      extent_[d] = to[d];
      at_[d] = 0;
      const int64_t own = d < missing ? 1 : from[d - missing];
      step_[d] = own == 1 ? 0 : step;
      step *= own;
    }
  }

  int64_t index() const { return index_; }
  void Next() {
    for (size_t d = dims_; d-- > 0;) {
      index_ += step_[d];
      if (++at_[d] < extent_[d]) return;
      index_ -= step_[d] * extent_[d];
      at_[d] = 0;
    }
  }

 private:
  static constexpr size_t kMostDims = 16;
  size_t dims_;
  int64_t index_ = 0;
  std::array<int64_t, kMostDims> extent_;
  std::array<int64_t, kMostDims> step_;
  std::array<int64_t, kMostDims> at_;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_BROADCAST_H_
