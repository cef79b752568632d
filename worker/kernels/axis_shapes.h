// A tensor seen from one of its axes.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_AXIS_SHAPES_H_
#define LOCKSTEP_WORKER_KERNELS_AXIS_SHAPES_H_

#include <cstdint>

#include "common/tensor/shape.h"

namespace lockstep::device {

// [outer, extent, inner], the middle being the axis: outer * inner rows of `extent` elements, `inner` apart.
struct AxisExtents {
  // REQUIRES: -rank <= axis < rank.
  AxisExtents(int64_t axis, const Shape& shape) {
    const auto rank = static_cast<int64_t>(shape.size());
    if (axis < 0) axis += rank;
    for (int64_t i = 0; i < rank; ++i) (i < axis ? outer : i == axis ? extent : inner) *= shape[static_cast<size_t>(i)];
  }
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;

  // Offset of a row's first element.
  int64_t base(int64_t row) const { return row / inner * extent * inner + row % inner; }
};

// [rows, width]: what stands before an axis, and it with what follows.
struct RowExtents {
  // REQUIRES: -rank <= axis < rank.
  RowExtents(int64_t axis, const Shape& shape) {
    const AxisExtents e(axis, shape);
    rows = e.outer;
    width = e.extent * e.inner;
  }
  int64_t rows = 1;
  int64_t width = 1;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_AXIS_SHAPES_H_
