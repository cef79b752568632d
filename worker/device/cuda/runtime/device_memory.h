// The device memory of host execution: host memory that faults when the host accesses it while no stream works, and
// that is filled with garbage when allocated.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_DEVICE_MEMORY_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_DEVICE_MEMORY_H_

#include <cstddef>
#include <map>
#include <mutex>

#include "absl/status/statusor.h"

namespace lockstep::device::cuda {

// The largest allocation, whatever the GPU's size.
inline constexpr size_t kMostHostBytes = size_t{1} << 40;

// Rounds up to whole pages, with at least one byte more than `bytes`.
inline size_t Pages(size_t bytes) {
  constexpr size_t kPage = 4096;
  return (bytes / kPage + 1) * kPage;
}

// Readable and writable while at least one stream works.
class DeviceMemory {
 public:
  static DeviceMemory& Get();

  absl::StatusOr<std::byte*> Allocate(size_t bytes);
  void Free(std::byte* address);

  void BeginWork();
  void EndWork();

 private:
  void ProtectAll(int protection);

  std::mutex mutex_;
  std::map<std::byte*, size_t> blocks_;
  int working_ = 0;
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_DEVICE_MEMORY_H_
