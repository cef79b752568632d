// The checker of host execution: it sees every access of own kernels and every operation of streams, and ends the
// process with a report where a GPU would be free to compute something else. The kernels are compiled with the calls
// that gcc makes for -fsanitize=thread, which access_calls.cc takes; nothing of ThreadSanitizer is linked.
//
// It says nothing in a build with another sanitizer (kChecks).
//
// Threading: thread-safe, except where a type says otherwise. One operation is looked at at a time: an Operation holds
// the lock.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_CHECKER_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "worker/device/cuda/checker/access.h"
#include "worker/device/cuda/checker/memory_map.h"

namespace lockstep::device::cuda::checker {

extern const bool kChecks;

// Of the whole process. REQUIRES: the lock, for everything but its making.
MemoryMap& Map();
std::mutex& Lock();

// What the host knows to have ended: any of its threads, since how they tell each other is not seen.
Clock HostKnows();
void HostLearns(const Clock& clock);

// A stream's part in the order of operations. Owned by the stream's thread, but for being made and dropped.
class StreamOrder {
 public:
  StreamOrder();
  // REQUIRES: the host has waited for the stream.
  ~StreamOrder();
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;

  // Makes it the one whose operations the calling thread runs.
  void Enter();
  // REQUIRES: Enter was called by this thread.
  static StreamOrder& OfThread();
  void Learn(const Clock& clock) { clock_.Join(clock); }
  const Clock& clock() const { return clock_; }

 private:
  friend class Operation;
  uint8_t slot_ = 0;
  Clock clock_;
};

// One operation of the calling thread's stream, as long as it runs. Without a stream it stands alone.
class Operation {
 public:
  // `name` for reports, a literal.
  explicit Operation(const char* name);
  ~Operation();

  // What it reads and writes without the checker seeing it. Memory of the host is none of its business, unless pinned.
  void Reads(const void* memory, size_t bytes) { Touch(memory, bytes, false); }
  void Writes(const void* memory, size_t bytes) { Touch(memory, bytes, true); }

  // From here on the memory counts as never written.
  void Empties(const void* memory, size_t bytes);

  const Now& now() const { return now_; }

 private:
  void Touch(const void* memory, size_t bytes, bool write);

  const char* const name_;
  std::unique_lock<std::mutex> lock_;
  Now now_;
};

// Ends the process where an operation that the host does not know to have ended uses the piece. REQUIRES: the lock.
void CheckFree(const Piece& piece);

}  // namespace lockstep::device::cuda::checker

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_CHECKER_H_
