// Memory that the host cannot access, like a GPU's: its pages are inaccessible except while a device works.
//
// Threading: thread-safe. Open and Close come in pairs.
#ifndef LOCKSTEP_WORKER_FAKES_HIDDEN_MEMORY_H_
#define LOCKSTEP_WORKER_FAKES_HIDDEN_MEMORY_H_

#include <cstddef>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "common/sync/mutex.h"
#include "worker/device/device.h"

namespace lockstep::device {

class HiddenMemory : public std::enable_shared_from_this<HiddenMemory> {
 public:
  // Zeroed memory; the buffer keeps this object alive.
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes);

  // Open makes all buffers accessible until the matching Close; calls may nest.
  void Open();
  void Close();

 private:
  class HiddenBuffer;

  void Free(std::byte* address);
  void Protect(std::byte* address, size_t bytes, bool accessible);

  Mutex mutex_;
  std::map<std::byte*, size_t> buffers_ GUARDED_BY(mutex_);  // address, whole pages
  int open_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_FAKES_HIDDEN_MEMORY_H_
