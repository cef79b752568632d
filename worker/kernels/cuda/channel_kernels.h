// Kernels for what cuDNN does not fuse into a convolution: adding a bias per channel, and summing per channel.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_CHANNEL_KERNELS_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_CHANNEL_KERNELS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "worker/device/cuda/runtime/runtime.h"

namespace lockstep::device::cuda {

// A value [N, C, d...] of F32 or BF16 and its layout.
struct ChannelValue {
  DType dtype = DType::kF32;
  Shape shape;
  bool channels_last = false;
};

// Whether the kernels serve the value.
bool FitsPerChannel(const ChannelValue& value);

// Queues y[n, c, ...] += bias[c].
absl::Status AddPerChannel(StreamHandle stream, const ChannelValue& value, const std::byte* bias, std::byte* y);

// Queues sums[c] = the sum of all y[n, c, ...], accumulated in float32 in an order that depends only on shape and
// layout. `workspace`: SumPerChannelBytes.
absl::Status SumPerChannel(StreamHandle stream, const ChannelValue& value, const std::byte* y, std::byte* sums,
                           std::byte* workspace);
size_t SumPerChannelBytes(const ChannelValue& value);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_CHANNEL_KERNELS_H_
