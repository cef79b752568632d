// What host execution offers beside runtime.h: putting work into a stream. Each stream is a thread; device memory is
// memory of the host that faults when it is touched outside a stream, and is full of garbage when it is new. Time is
// what work says that it takes.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_RUNTIME_ON_HOST_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_RUNTIME_ON_HOST_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "worker/device/cuda/runtime/runtime.h"

namespace lockstep::device::cuda {

// What a piece of work takes that does not say so.
inline constexpr double kHostWorkMilliseconds = 1;

// Queues `work`, or writes it down while the stream is captured.
absl::Status Enqueue(StreamHandle stream, std::function<void()> work, double milliseconds = kHostWorkMilliseconds);
// The same for work that can fail: later work of the stream is then not run, and every later call returns the failure.
absl::Status EnqueueFallible(StreamHandle stream, std::function<absl::Status()> work);

// The memory that a GPU of host execution has.
inline constexpr int64_t kHostGpuBytes = int64_t{8} << 30;

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_RUNTIME_ON_HOST_H_
