// Launches kernels into streams, on a GPU and in host execution:
//
//   LS_RETURN_IF_ERROR(Launch(stream, {.blocks = {64}, .threads = {256}}, &RowSumKernel<float>, rows, width, x, y));
//   return ForEach(stream, count, LS_KERNEL_LAMBDA(int64_t i) { y[i] = x[i] * factor; });
//
// Arguments are copied by the call; pointers among them point to device memory. A launch does not wait for the kernel;
// it blocks only when the stream's launch queue is full.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_LAUNCH_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_LAUNCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/device/cuda/runtime/runtime.h"

#ifdef __CUDACC__
#include "worker/device/cuda/runtime/launch_status.h"
#else
#include "worker/device/cuda/runtime/runtime_on_host.h"
#endif

namespace lockstep::device::cuda {

struct Dimensions {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

struct LaunchShape {
  Dimensions blocks;        // x below 2^31, y and z below 65,536
  Dimensions threads;       // 1,024 in all at most
  size_t shared_bytes = 0;  // dynamic shared memory, 48 KiB at most
};

#ifdef __CUDACC__

template <typename... Parameters, typename... Arguments>
absl::Status Launch(StreamHandle stream, const LaunchShape& shape, void (*kernel)(Parameters...),
                    Arguments... arguments) {
  kernel<<<dim3(shape.blocks.x, shape.blocks.y, shape.blocks.z),
           dim3(shape.threads.x, shape.threads.y, shape.threads.z), shape.shared_bytes, stream>>>(
      static_cast<Parameters>(arguments)...);
  return LaunchStatus();
}

#else

// Exempts a function from the checker: its loads and stores are not a kernel's, here those of the arguments.
#define LS_UNCHECKED __attribute__((no_sanitize("thread")))

template <typename... Parameters, typename... Arguments>
absl::Status Launch(StreamHandle stream, const LaunchShape& shape, void (*kernel)(Parameters...),
                    Arguments... arguments) {
  return Enqueue(stream, [=] {
    host_execution::Run({shape.blocks.x, shape.blocks.y, shape.blocks.z},
                        {shape.threads.x, shape.threads.y, shape.threads.z}, shape.shared_bytes,
                        [&]() LS_UNCHECKED { kernel(static_cast<Parameters>(arguments)...); });
  });
}

#endif

// The usual block size, and the most blocks of a kernel with a grid-stride loop.
inline constexpr int kBlock = 256;
inline constexpr int64_t kMostBlocks = 4096;

inline unsigned BlocksFor(int64_t count, int64_t per_block = kBlock, int64_t most = kMostBlocks) {
  return static_cast<unsigned>(std::clamp<int64_t>((count + per_block - 1) / per_block, 1, most));
}

template <typename F>
__global__ void ForEachKernel(int64_t count, F f) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) f(i);
}

// Queues f(i) for every i in [0, count), in any order.
template <typename F>
absl::Status ForEach(StreamHandle stream, int64_t count, F f) {
  if (count == 0) return absl::OkStatus();
  return Launch(stream, {.blocks = {BlocksFor(count)}, .threads = {kBlock}}, &ForEachKernel<F>, count, f);
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_LAUNCH_H_
