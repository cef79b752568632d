// The race checker of host execution. It sees every memory access of the project's kernels and every operation of
// streams, and ends the process with a report at a data race, an invalid address or an uninitialised read, which on a
// GPU would be undefined. Kernels are compiled with the instrumentation of gcc's -fsanitize=thread, whose callbacks
// access_calls.cc implements; ThreadSanitizer itself is not linked.
//
// It is disabled in builds with another sanitizer (kChecks).
//
// Threading: thread-safe, except where a type says otherwise. One operation is checked at a time: an Operation holds
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

// The map and the lock of the process. REQUIRES: callers of the map's functions hold the lock.
MemoryMap& Map();
std::mutex& Lock();

// The operations that the host knows to have ended. All host threads share one clock, since the checker does not see
// how they synchronise.
Clock HostKnows();
void HostLearns(const Clock& clock);

// A stream's clock. Used by the stream's thread alone, but constructed and destroyed by any thread.
class StreamOrder {
 public:
  StreamOrder();
  // REQUIRES: the host has waited for the stream.
  ~StreamOrder();
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;

  // Declares that the calling thread runs the operations of this stream.
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

// One running operation of the calling thread's stream, for its lifetime; or of no stream.
class Operation {
 public:
  // `name`: a string literal, for reports.
  explicit Operation(const char* name);
  ~Operation();

  // Declares accesses that are not instrumented. Host memory is ignored unless it is pinned.
  void Reads(const void* memory, size_t bytes) { Touch(memory, bytes, false); }
  void Writes(const void* memory, size_t bytes) { Touch(memory, bytes, true); }

  // Marks the memory as uninitialised.
  void Empties(const void* memory, size_t bytes);

  const Now& now() const { return now_; }

 private:
  void Touch(const void* memory, size_t bytes, bool write);

  const char* const name_;
  std::unique_lock<std::mutex> lock_;
  Now now_;
};

// Ends the process if an operation uses `piece` that the host does not know to have ended. REQUIRES: the lock.
void CheckFree(const Piece& piece);

}  // namespace lockstep::device::cuda::checker

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_CHECKER_H_
