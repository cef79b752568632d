// Buffers, streams and events of a GPU, implemented over runtime.h, with access to the handles for launches.
//
// Threading: owned by the device's owner thread; buffers may be dropped and events waited for by any thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_CUDA_STREAM_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_CUDA_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/device/cuda/runtime/runtime.h"
#include "worker/device/device.h"

namespace lockstep::device::cuda {

// Limits the GPU memory of one device's buffers. Thread-safe; buffers may outlive the device.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit) : limit_(limit) {}  // 0: no limit
  // ResourceExhausted, with both sizes, when that exceeds the limit.
  absl::Status Take(int64_t bytes);
  void Return(int64_t bytes) { used_ -= bytes; }

 private:
  const int64_t limit_;
  std::atomic<int64_t> used_{0};
};

// Allocates zeroed device memory; blocks until it is zeroed. ResourceExhausted by AllocateDevice or by `budget`, which
// may be null.
absl::StatusOr<std::unique_ptr<Buffer>> NewDeviceBuffer(size_t bytes, std::shared_ptr<MemoryBudget> budget = nullptr);
// Allocates zeroed, pinned host memory.
absl::StatusOr<std::unique_ptr<Buffer>> NewPinnedBuffer(size_t bytes);
absl::StatusOr<std::unique_ptr<Stream>> NewCudaStream();
absl::StatusOr<std::unique_ptr<Event>> NewCudaEvent();

// REQUIRES: the stream or event came from the functions above.
StreamHandle HandleOf(Stream& stream);
EventHandle HandleOf(Event& event);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_CUDA_STREAM_H_
