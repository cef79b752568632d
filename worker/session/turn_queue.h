// A queue whose values are handled one at a time, each in a turn. A thread of the queue takes turns for the values that
// others push. A thread that has a value may take a turn for it at once, if none is under way and nothing is queued:
// then no other thread has to wake up.
//
// Invariants
//   * At most one turn is under way; turns happen one after another also for the memory model.
//   * Values of one thread are handled in the order in which it brought them.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_SESSION_TURN_QUEUE_H_
#define LOCKSTEP_WORKER_SESSION_TURN_QUEUE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "common/clock/clock.h"
#include "common/sync/mutex.h"

namespace lockstep::worker {

template <typename T>
class TurnQueue {
 public:
  explicit TurnQueue(size_t limit) : limit_(limit) {}

  // Blocks while the queue is full. After Close the value is dropped. REQUIRES: this thread has no turn, or the queue
  // is not full.
  void Push(T value) {
    MutexLock lock(&mutex_);
    while (!closed_ && values_.size() >= limit_) changed_.Wait(&mutex_);
    if (closed_) return;
    values_.push_back(std::move(value));
    changed_.SignalAll();
  }

  // Begins a turn for the next value. Blocks until there is one, or `timeout` has passed or End says so: then the turn
  // has no value. Waits for the end of a turn that is under way, whatever the timeout. The turn lasts until End.
  std::optional<T> Begin(absl::Duration timeout) {
    const absl::Time until = SteadyNow() + timeout;
    MutexLock lock(&mutex_);
    while (values_.empty() && !interrupted_) {
      const absl::Duration left = until - SteadyNow();
      if (left <= absl::ZeroDuration()) break;
      (void)changed_.WaitWithTimeout(&mutex_, left);
    }
    AwaitEnd();
    under_way_ = true;
    interrupted_ = false;
    if (values_.empty()) return std::nullopt;
    std::optional<T> value = std::move(values_.front());
    values_.pop_front();
    if (values_.size() + 1 == limit_) changed_.SignalAll();
    return value;
  }

  // Begins a turn for a value that the caller has at hand, and never blocks for one: false when a turn is under way,
  // something is queued, or the queue is closed.
  bool BeginAtOnce() {
    MutexLock lock(&mutex_);
    if (under_way_ || closed_ || !values_.empty()) return false;
    return under_way_ = true;
  }

  // Ends the turn. `interrupt`: the next Begin does not wait for a value.
  void End(bool interrupt) {
    MutexLock lock(&mutex_);
    under_way_ = false;
    interrupted_ = interrupted_ || interrupt;
    if (interrupted_ || await_end_ > 0 || !values_.empty()) changed_.SignalAll();
  }

  // Waits for the end of a turn that is under way. Afterwards BeginAtOnce begins none, and values are dropped.
  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
    changed_.SignalAll();
    AwaitEnd();
  }

 private:
  void AwaitEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++await_end_;
    while (under_way_) changed_.Wait(&mutex_);
    --await_end_;
  }

  const size_t limit_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<T> values_ GUARDED_BY(mutex_);
  bool under_way_ GUARDED_BY(mutex_) = false;
  int await_end_ GUARDED_BY(mutex_) = 0;  // threads that wait for the end of a turn
  bool interrupted_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_TURN_QUEUE_H_
