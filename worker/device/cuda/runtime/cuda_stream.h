// Buffers, streams and events of a GPU over runtime.h, and the handle behind a stream for whoever launches into it.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_CUDA_STREAM_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_CUDA_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/device/cuda/runtime/runtime.h"
#include "worker/device/device.h"

namespace lockstep::device::cuda {

// How much of a GPU's memory the buffers of one device may take. Thread-safe; buffers may outlive the device.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit) : limit_(limit) {}  // 0: no limit
  // ResourceExhausted with both sizes when that is too much.
  absl::Status Take(int64_t bytes);
  void Return(int64_t bytes) { used_ -= bytes; }

 private:
  const int64_t limit_;
  std::atomic<int64_t> used_{0};
};

// Zeroed device memory. Blocks until it is zeroed. ResourceExhausted as AllocateDevice, and as the budget, which may be
// null.
absl::StatusOr<std::unique_ptr<Buffer>> NewDeviceBuffer(size_t bytes, std::shared_ptr<MemoryBudget> budget = nullptr);
// Zeroed host memory that the GPU copies from and to by itself.
absl::StatusOr<std::unique_ptr<Buffer>> NewPinnedBuffer(size_t bytes);
absl::StatusOr<std::unique_ptr<Stream>> NewCudaStream();
absl::StatusOr<std::unique_ptr<Event>> NewCudaEvent();

// REQUIRES: the stream or event came from the functions above.
StreamHandle HandleOf(Stream& stream);
EventHandle HandleOf(Event& event);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_CUDA_STREAM_H_
