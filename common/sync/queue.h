// A bounded queue between threads: a producer that is faster than the consumer blocks (Push) or gets false (TryPush).
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_SYNC_QUEUE_H_
#define LOCKSTEP_COMMON_SYNC_QUEUE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace lockstep {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t limit) : limit_(limit) {}

  // Blocks while the queue is full. False when it was closed: the value is dropped.
  bool Push(T value) {
    MutexLock lock(&mutex_);
    while (!closed_ && values_.size() >= limit_) not_full_.Wait(&mutex_);
    if (closed_) return false;
    values_.push_back(std::move(value));
    not_empty_.Signal();
    return true;
  }

  // Never blocks. False when the queue is full or closed: the value is dropped.
  bool TryPush(T value) {
    MutexLock lock(&mutex_);
    if (closed_ || values_.size() >= limit_) return false;
    values_.push_back(std::move(value));
    not_empty_.Signal();
    return true;
  }

  // Blocks until there is a value, the queue is closed and drained, or `timeout` passed; nullopt in the latter two.
  std::optional<T> Pop(absl::Duration timeout = absl::InfiniteDuration()) {
    MutexLock lock(&mutex_);
    while (values_.empty() && !closed_) {
      if (timeout <= absl::ZeroDuration()) return std::nullopt;
      if (not_empty_.WaitWithTimeout(&mutex_, timeout)) break;
    }
    if (values_.empty()) return std::nullopt;
    T value = std::move(values_.front());
    values_.pop_front();
    not_full_.Signal();
    return value;
  }

  // Rejects new values; queued values can still be popped.
  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
    not_empty_.SignalAll();
    not_full_.SignalAll();
  }

  bool closed() const {
    MutexLock lock(&mutex_);
    return closed_;
  }

  size_t size() const {
    MutexLock lock(&mutex_);
    return values_.size();
  }

 private:
  const size_t limit_;
  mutable Mutex mutex_;
  CondVar not_empty_;
  CondVar not_full_;
  std::deque<T> values_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SYNC_QUEUE_H_
