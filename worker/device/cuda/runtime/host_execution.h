// CUDA's execution model on the host, so that kernels can be tested without a GPU and without nvcc. Blocks run one
// after another; the threads of a block are fibers that yield at barriers and shuffles. Their order changes at every
// barrier, so that a missing barrier fails a test.
//
// Undefined behaviour of CUDA ends the process with the kernel's source location: a barrier that some threads of a
// block skip, or that they reach at different places; a shuffle without all lanes of its warp; and what the checker
// finds (worker/device/cuda/checker).
//
// Threading: a launch runs on one thread, with its own fibers; any number of threads may run launches.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_EXECUTION_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_EXECUTION_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/functional/function_ref.h"

namespace lockstep::device::cuda::host_execution {

struct Index3 {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};

struct Extent3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;

  uint64_t count() const { return uint64_t{x} * y * z; }
};

// threadIdx, blockIdx, blockDim and gridDim of the running kernel thread.
struct Position {
  Index3 thread;
  Index3 block;
  Extent3 block_size;
  Extent3 grid_size;
};
extern thread_local Position position;

// Runs `kernel` once per thread of the grid; blocks until all have ended.
void Run(Extent3 grid, Extent3 block, size_t shared_bytes, absl::FunctionRef<void()> kernel);

// Called by kernel threads.
void BlockBarrier(const char* file, int line);
void WarpBarrier(const char* file, int line);
// The bits that `lane` of the warp passed to the same call; the own bits when there is no such lane.
uint64_t Shuffle(unsigned mask, uint64_t bits, int lane, const char* file, int line);
int LaneOfThread();
std::byte* DynamicSharedBytes();
// See StoreSame.
void StoreSameBytes(void* to, const void* from, size_t bytes);

template <typename T>
T ShuffleValue(unsigned mask, T value, int lane, const char* file, int line) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = Shuffle(mask, bits, lane, file, line);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace lockstep::device::cuda::host_execution

namespace lockstep::device::cuda {

template <typename T>
T* DynamicShared() {
  return reinterpret_cast<T*>(host_execution::DynamicSharedBytes());
}

template <typename T>
void StoreSame(T* to, T value) {
  host_execution::StoreSameBytes(to, &value, sizeof(T));
}

}  // namespace lockstep::device::cuda

// Flatten inlines all calls of a kernel: gcc does not instrument a store of the value that a call returns.
#define __global__ __attribute__((flatten))
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
// All threads of a block run on one host thread.
#define __shared__ static thread_local
#define threadIdx (::lockstep::device::cuda::host_execution::position.thread)
#define blockIdx (::lockstep::device::cuda::host_execution::position.block)
#define blockDim (::lockstep::device::cuda::host_execution::position.block_size)
#define gridDim (::lockstep::device::cuda::host_execution::position.grid_size)
#define __syncthreads() ::lockstep::device::cuda::host_execution::BlockBarrier(__FILE__, __LINE__)
#define __syncwarp() ::lockstep::device::cuda::host_execution::WarpBarrier(__FILE__, __LINE__)
#define __shfl_sync(mask, value, lane) \
  ::lockstep::device::cuda::host_execution::ShuffleValue(mask, value, lane, __FILE__, __LINE__)
#define __shfl_xor_sync(mask, value, bits)                \
  ::lockstep::device::cuda::host_execution::ShuffleValue( \
      mask, value, ::lockstep::device::cuda::host_execution::LaneOfThread() ^ (bits), __FILE__, __LINE__)
#define __shfl_down_sync(mask, value, distance)           \
  ::lockstep::device::cuda::host_execution::ShuffleValue( \
      mask, value, ::lockstep::device::cuda::host_execution::LaneOfThread() + (distance), __FILE__, __LINE__)

using std::fma;
using std::fmaf;

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_EXECUTION_H_
