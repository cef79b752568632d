// Where a sliding window reads: shared by convolution and pooling.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_WINDOW_H_
#define LOCKSTEP_WORKER_DEVICE_WINDOW_H_

#include <cstdint>

namespace lockstep::device {

struct Window {
  // From ConvAttributes or PoolAttributes.
  template <typename Attributes>
  explicit Window(const Attributes& attributes)
      : kernel_height(attributes.kernel_shape[0]),
        kernel_width(attributes.kernel_shape[1]),
        stride_height(attributes.strides[0]),
        stride_width(attributes.strides[1]),
        top(attributes.pads[0]),
        left(attributes.pads[1]),
        dilation_height(attributes.dilations[0]),
        dilation_width(attributes.dilations[1]) {}

  // The input row that kernel row `k` of output row `o` reads; outside of the input where padding lies.
  int64_t row(int64_t o, int64_t k) const { return o * stride_height - top + k * dilation_height; }
  int64_t column(int64_t o, int64_t k) const { return o * stride_width - left + k * dilation_width; }

  int64_t kernel_height;
  int64_t kernel_width;
  int64_t stride_height;
  int64_t stride_width;
  int64_t top;
  int64_t left;
  int64_t dilation_height;
  int64_t dilation_width;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_WINDOW_H_
