// Memory of a worker that its peers on the same host can map and read (memfd_create). Processes that map it see writes
// at once and without a copy.
//
// Invariants
//   * A segment never changes its size (it is sealed), so a peer that reads a mapped segment cannot get SIGBUS.
//   * Peers cannot write to a segment: it is sealed against new writable mappings where the kernel knows that seal
//     (since 5.1).
//   * The memory of a segment is freed when its buffer and every peer's mapping are gone, also after a kill.
//
// Threading: thread-safe; buffers may be dropped by any thread.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SHARED_SHARED_MEMORY_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SHARED_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/storage/descriptor.h"
#include "common/sync/mutex.h"
#include "worker/device/device.h"

namespace lockstep::worker {

// Bytes of a shared segment, for frames between ranks.
struct SharedRange {
  uint64_t segment = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// A mapping of a whole memfd.
class SharedMapping {
 public:
  SharedMapping() = default;
  // Maps `bytes` bytes. Empty when the system has no room.
  SharedMapping(int fd, size_t bytes, bool writable);
  ~SharedMapping();
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;

  std::byte* begin() const { return begin_; }  // null when empty
  size_t size() const { return size_; }

 private:
  std::byte* begin_ = nullptr;
  size_t size_ = 0;
};

// A sealed memfd with its writable mapping, zeroed, all pages touched.
struct SharedSegment {
  Descriptor fd;
  SharedMapping mapping;

  // Unavailable when the system does not support sealed memfds or its limit of file sizes is lower; ResourceExhausted,
  // with the size, when memory is exhausted.
  static absl::StatusOr<SharedSegment> Make(size_t bytes);
  // OK when `fd` is a memfd of `bytes` bytes that cannot change its size.
  static absl::Status Check(int fd, size_t bytes);
};

class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  static std::shared_ptr<SharedMemory> Make() { return std::shared_ptr<SharedMemory>(new SharedMemory); }

  // Zeroed memory in a segment of its own, as device::AllocateHostBuffer gives it. Errors of SharedSegment::Make.
  absl::StatusOr<std::unique_ptr<device::Buffer>> Allocate(size_t bytes);

  // The range of a segment that consists of these bytes; none if they do not lie in one segment.
  std::optional<SharedRange> Find(const void* begin, size_t bytes) const;

  // A segment to pass to peers. The descriptor is a duplicate.
  struct Listed {
    uint64_t number = 0;  // ascending; never used again
    size_t bytes = 0;
    Descriptor fd;
  };
  // The oldest `most` segments, in ascending order; fewer when descriptors run out.
  std::vector<Listed> List(size_t most) const;

 private:
  class SegmentBuffer;

  SharedMemory() = default;
  void Forget(uint64_t number);

  mutable Mutex mutex_;
  uint64_t last_number_ GUARDED_BY(mutex_) = 0;
  struct Known {
    const std::byte* begin = nullptr;
    size_t bytes = 0;
    int fd = -1;  // owned by the buffer
  };
  std::map<uint64_t, Known> segments_ GUARDED_BY(mutex_);  // by number
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SHARED_SHARED_MEMORY_H_
