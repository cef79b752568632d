// The index arithmetic of sliding windows, for convolution and pooling. One or two spatial dimensions are extended to
// three by leading dimensions of size 1 with a window of size 1.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_WINDOW_H_
#define LOCKSTEP_WORKER_KERNELS_WINDOW_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/math/host_device.h"
#include "common/tensor/shape.h"

namespace lockstep::device {

using Spatial = std::array<int64_t, 3>;

// The spatial dimensions of [N, C, spatial...] or of weights.
inline Spatial SpatialOf(const Shape& shape) {
  Spatial spatial = {1, 1, 1};
  std::copy(shape.begin() + 2, shape.end(), spatial.end() - static_cast<std::ptrdiff_t>(shape.size() - 2));
  return spatial;
}

inline int64_t VolumeOf(const Spatial& spatial) { return spatial[0] * spatial[1] * spatial[2]; }

struct Window {
  // From ConvAttributes or PoolAttributes.
  template <typename Attributes>
  explicit Window(const Attributes& attributes) {
    const size_t rank = attributes.kernel_shape.size();
    for (size_t i = 0; i < rank; ++i) {
      const size_t d = 3 - rank + i;
      kernel[d] = attributes.kernel_shape[i];
      stride[d] = attributes.strides[i];
      before[d] = attributes.pads[i];
      after[d] = attributes.pads[rank + i];
      dilation[d] = attributes.dilations[i];
    }
  }

  // The input coordinate along dimension d that kernel element `k` reads for output coordinate `o`; outside of the
  // input in the padding.
  LS_HD int64_t at(size_t d, int64_t o, int64_t k) const { return o * stride[d] - before[d] + k * dilation[d]; }

  // Calls visit(input_offset, kernel_offset) for every element of output position `o`'s window that lies inside of the
  // input, in row-major order.
  template <typename Visit>
  void ForEachInside(const Spatial& input, const Spatial& o, const Visit& visit) const {
    for (int64_t k0 = 0; k0 < kernel[0]; ++k0) {
      const int64_t i0 = at(0, o[0], k0);
      if (i0 < 0 || i0 >= input[0]) continue;
      for (int64_t k1 = 0; k1 < kernel[1]; ++k1) {
        const int64_t i1 = at(1, o[1], k1);
        if (i1 < 0 || i1 >= input[1]) continue;
        for (int64_t k2 = 0; k2 < kernel[2]; ++k2) {
          const int64_t i2 = at(2, o[2], k2);
          if (i2 < 0 || i2 >= input[2]) continue;
          visit((i0 * input[1] + i1) * input[2] + i2, (k0 * kernel[1] + k1) * kernel[2] + k2);
        }
      }
    }
  }

  // The number of elements of output position `o`'s window in the input and, with `padded`, in its padding. Elements
  // beyond the padding, which ceil_mode allows, do not count.
  LS_HD int64_t Count(const Spatial& input, const Spatial& o, bool padded) const {
    int64_t count = 1;
    for (size_t d = 0; d < 3; ++d) {
      const int64_t low = padded ? -before[d] : 0;
      const int64_t high = input[d] + (padded ? after[d] : 0);
      int64_t inside = 0;
      for (int64_t k = 0; k < kernel[d]; ++k) inside += at(d, o[d], k) >= low && at(d, o[d], k) < high ? 1 : 0;
      count *= inside;
    }
    return count;
  }

  Spatial kernel = {1, 1, 1};
  Spatial stride = {1, 1, 1};
  Spatial before = {0, 0, 0};
  Spatial after = {0, 0, 0};
  Spatial dilation = {1, 1, 1};
};

// Calls visit(offset, position) for every position of a plane, in row-major order.
template <typename Visit>
void ForEachPosition(const Spatial& plane, const Visit& visit) {
  int64_t offset = 0;
  for (int64_t p0 = 0; p0 < plane[0]; ++p0) {
    for (int64_t p1 = 0; p1 < plane[1]; ++p1) {
      for (int64_t p2 = 0; p2 < plane[2]; ++p2) visit(offset++, Spatial{p0, p1, p2});
    }
  }
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_WINDOW_H_
