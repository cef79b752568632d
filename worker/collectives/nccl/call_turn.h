// Serialises calls on an NCCL communicator, which allows one at a time. Unlike a mutex guard it can be tried, so that
// the watching thread does not hang behind a call that never returns.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_NCCL_CALL_TURN_H_
#define LOCKSTEP_WORKER_COLLECTIVES_NCCL_CALL_TURN_H_

#include <utility>

#include "common/sync/mutex.h"

namespace lockstep::worker {

class CallTurn {
 public:
  // Blocks until no other thread has the turn.
  void Begin() {
    MutexLock lock(&mutex_);
    while (taken_) ended_.Wait(&mutex_);
    taken_ = true;
  }
  // Returns false without blocking when another thread has the turn.
  bool TryBegin() {
    MutexLock lock(&mutex_);
    return !std::exchange(taken_, true);
  }
  void End() {
    MutexLock lock(&mutex_);
    taken_ = false;
    ended_.Signal();
  }

 private:
  Mutex mutex_;
  CondVar ended_;
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
};

// Holds the turn for its lifetime.
class InTurn {
 public:
  explicit InTurn(CallTurn& turn) : turn_(turn) { turn_.Begin(); }
  ~InTurn() { turn_.End(); }
  InTurn(const InTurn&) = delete;
  InTurn& operator=(const InTurn&) = delete;

 private:
  CallTurn& turn_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_CALL_TURN_H_
