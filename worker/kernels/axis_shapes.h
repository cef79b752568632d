// Views of a tensor as rows along an axis.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_AXIS_SHAPES_H_
#define LOCKSTEP_WORKER_KERNELS_AXIS_SHAPES_H_

#include <cstdint>

#include "common/tensor/shape.h"

namespace lockstep::device {

// The shape as [outer, extent, inner], where the axis is in the middle: outer * inner rows of `extent` elements, which
// are `inner` apart in memory.
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

  // The offset of a row's first element.
  int64_t base(int64_t row) const { return row / inner * extent * inner + row % inner; }
};

// The shape as [rows, width]: the product of the dimensions before the axis, and of all others.
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

// X [N, C, d...] as rows, one per group of channels of a sample.
struct GroupExtents {
  // `groups` = 0: every channel is a group.
  GroupExtents(int64_t groups, const Shape& x) : all_channels(x[1]), channels(groups == 0 ? 1 : x[1] / groups) {
    for (size_t i = 2; i < x.size(); ++i) plane *= x[i];
    rows = channels == 0 ? 0 : x[0] * x[1] / channels;
  }
  int64_t all_channels;
  int64_t channels;
  int64_t plane = 1;
  int64_t rows;

  int64_t width() const { return channels * plane; }
  // The channel of element i of a row.
  int64_t channel(int64_t row, int64_t i) const { return (row * channels + i / plane) % all_channels; }
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_AXIS_SHAPES_H_
