// Epilogues of convolutions by libraries that do not fuse them: a bias per channel, and sums per channel.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_CHANNEL_KERNELS_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_CHANNEL_KERNELS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "worker/device/cuda/runtime/runtime.h"

namespace lockstep::device::cuda {

// A value [N, C, d...] of F32 or BF16, and how it lies.
struct ChannelValue {
  DType dtype = DType::kF32;
  Shape shape;
  bool channels_last = false;
};

// Whether the kernels serve it.
bool FitsPerChannel(const ChannelValue& value);

// Queues y[n, c, ...] += bias[c].
absl::Status AddPerChannel(StreamHandle stream, const ChannelValue& value, const std::byte* bias, std::byte* y);

// Queues sums[c] = sum of all y[n, c, ...], in an order that follows from shape and layout alone. Gathered in float32.
absl::Status SumPerChannel(StreamHandle stream, const ChannelValue& value, const std::byte* y, std::byte* sums,
                           std::byte* workspace);
size_t SumPerChannelBytes(const ChannelValue& value);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_CHANNEL_KERNELS_H_
