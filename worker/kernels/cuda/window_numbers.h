// A sliding window and its input and output planes in a form for kernels: 32-bit numbers, three dimensions.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_WINDOW_NUMBERS_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_WINDOW_NUMBERS_H_

#include <algorithm>
#include <cstdint>

#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/fast_divide.h"
#include "worker/kernels/window.h"

namespace lockstep::device::cuda {

// A position in a plane, a kernel or a window.
struct Point {
  int at[3];
};

// The extents of a plane, with divisors to split flat offsets.
struct Plane {
  Plane() = default;
  explicit Plane(const Spatial& spatial) : volume(static_cast<int>(VolumeOf(spatial))), by_volume(FastDivide(volume)) {
    for (int d = 0; d < 3; ++d) {
      extent[d] = static_cast<int>(spatial[static_cast<size_t>(d)]);
      by_extent[d] = FastDivide(extent[d]);
    }
  }

  // Splits a flat index over planes: leaves the number of the plane in `rest` and returns the position in it.
  LS_HD Point Split(uint32_t* rest) const {
    Point point;
    point.at[2] = static_cast<int>(by_extent[2].Split(rest));
    point.at[1] = static_cast<int>(by_extent[1].Split(rest));
    point.at[0] = static_cast<int>(by_extent[0].Split(rest));
    return point;
  }
  LS_HD int Offset(int i0, int i1, int i2) const { return (i0 * extent[1] + i1) * extent[2] + i2; }
  LS_HD bool Holds(int i0, int i1, int i2) const {
    return static_cast<unsigned>(i0) < static_cast<unsigned>(extent[0]) &&
           static_cast<unsigned>(i1) < static_cast<unsigned>(extent[1]) &&
           static_cast<unsigned>(i2) < static_cast<unsigned>(extent[2]);
  }

  int extent[3] = {1, 1, 1};
  int volume = 1;
  FastDivide by_extent[3];
  FastDivide by_volume;
};

// A window between input planes x and output planes y. REQUIRES: WindowFits, that is, all numbers and offsets are below
// 2^31 and no plane is empty.
struct WindowNumbers {
  WindowNumbers(const Window& window, const Spatial& x_plane, const Spatial& y_plane)
      : x(x_plane), y(y_plane), kernel(window.kernel) {
    for (int d = 0; d < 3; ++d) {
      const auto i = static_cast<size_t>(d);
      stride[d] = static_cast<int>(window.stride[i]);
      by_stride[d] = FastDivide(stride[d]);
      before[d] = static_cast<int>(window.before[i]);
      dilation[d] = static_cast<int>(window.dilation[i]);
    }
  }

  // The first input coordinates of the window of output position `o`; they may lie in the padding.
  LS_HD Point Begin(const Point& o) const {
    return {{o.at[0] * stride[0] - before[0], o.at[1] * stride[1] - before[1], o.at[2] * stride[2] - before[2]}};
  }

  // The range of output positions along dimension `d` whose windows span input coordinate `i`; with dilation some of
  // them skip it.
  LS_HD int FirstReader(int d, int i) const {
    const int past = i + before[d] - (kernel.extent[d] - 1) * dilation[d];
    return past <= 0 ? 0 : static_cast<int>(by_stride[d].Quotient(static_cast<uint32_t>(past + stride[d] - 1)));
  }
  LS_HD int LastReader(int d, int i) const {
    const int last = static_cast<int>(by_stride[d].Quotient(static_cast<uint32_t>(i + before[d])));
    return last < y.extent[d] ? last : y.extent[d] - 1;
  }

  Plane x;
  Plane y;
  Plane kernel;
  int stride[3];
  FastDivide by_stride[3];
  int before[3];
  int dilation[3];
};

// Whether WindowNumbers can represent the window, and offsets in tensors of these shapes are below 2^31.
inline bool WindowFits(const Window& window, const Shape& x, const Shape& y) {
  constexpr int64_t kMost = FastDivide::kMost / 4;
  const int64_t x_size = NumElements(x), y_size = NumElements(y);
  if (x_size == 0 || y_size == 0 || VolumeOf(window.kernel) == 0 || std::max(x_size, y_size) >= kMost) return false;
  for (size_t d = 0; d < 3; ++d) {
    if ((window.kernel[d] + 1) * window.dilation[d] + window.before[d] + window.after[d] >= kMost) return false;
    if (window.stride[d] * SpatialOf(y)[d] >= kMost) return false;
  }
  return true;
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_WINDOW_NUMBERS_H_
