// What stands behind a convolution by a library that does not fuse it: a value added per channel, and sums per channel.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHANNEL_KERNELS_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHANNEL_KERNELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/device/cuda/runtime.h"

namespace lockstep::device::cuda {

// A value [samples, channels, volume] of float32.
struct ChannelShape {
  int64_t samples = 1;
  int64_t channels = 1;
  int64_t volume = 1;
};

// Queues y[n, c, v] += bias[c].
absl::Status AddPerChannel(StreamHandle stream, const ChannelShape& shape, const float* bias, float* y);

// Queues sums[c] = sum of y[n, c, v] over n and v, in an order that follows from the shape alone.
absl::Status SumPerChannel(StreamHandle stream, const ChannelShape& shape, const float* y, float* sums);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHANNEL_KERNELS_H_
