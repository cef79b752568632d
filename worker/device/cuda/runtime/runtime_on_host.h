// Host execution's addition to runtime.h: queueing host functions in a stream. Each stream is a thread; device memory
// is host memory that faults when accessed outside of streams and is filled with garbage when allocated. Time is
// simulated: each piece of work states its duration.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_RUNTIME_ON_HOST_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_RUNTIME_ON_HOST_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "worker/device/cuda/runtime/runtime.h"

namespace lockstep::device::cuda {

// The default duration of a piece of work.
inline constexpr double kHostWorkMilliseconds = 1;

// Queues `work`, or records it while the stream is captured.
absl::Status Enqueue(StreamHandle stream, std::function<void()> work, double milliseconds = kHostWorkMilliseconds);
// The same for work that can fail: after a failure later work of the stream is skipped, and all calls return the
// failure.
absl::Status EnqueueFallible(StreamHandle stream, std::function<absl::Status()> work);

// The default memory size of host execution's GPU.
inline constexpr int64_t kHostGpuBytes = int64_t{8} << 30;

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_RUNTIME_ON_HOST_H_
