#include "worker/device/cuda/channel_kernels.h"

#include "worker/device/cuda/code.h"
#include "worker/device/cuda/launch.h"

namespace lockstep::device::cuda {
namespace {

// A block per channel. Thread t adds up elements t, t + kBlock, ... of the channel; the threads' sums are added in
// pairs.
__global__ void SumPerChannelKernel(ChannelShape shape, const float* y, float* sums) {
  __shared__ float parts[kBlock];
  const int64_t channel = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t count = shape.samples * shape.volume;
  float sum = 0;
  for (int64_t i = thread; i < count; i += kBlock) {
    const int64_t sample = i / shape.volume;
    sum += y[(sample * shape.channels + channel) * shape.volume + (i - sample * shape.volume)];
  }
  parts[thread] = sum;
  __syncthreads();
  for (int half = kBlock / 2; half > 0; half /= 2) {
    if (thread < half) parts[thread] += parts[thread + half];
    __syncthreads();
  }
  if (thread == 0) sums[channel] = parts[0];
}

}  // namespace

absl::Status AddPerChannel(StreamHandle stream, const ChannelShape& shape, const float* bias, float* y) {
  const int64_t channels = shape.channels, volume = shape.volume;
  return ForEach(
      stream, shape.samples * channels * volume, LS_KERNEL_LAMBDA(int64_t i) { y[i] += bias[i / volume % channels]; });
}

absl::Status SumPerChannel(StreamHandle stream, const ChannelShape& shape, const float* y, float* sums) {
  return Launch(stream, {.blocks = {static_cast<unsigned>(shape.channels)}, .threads = {kBlock}}, &SumPerChannelKernel,
                shape, y, sums);
}

}  // namespace lockstep::device::cuda
