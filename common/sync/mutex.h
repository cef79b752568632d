// Mutex and condition variable over std::mutex. The packaged Abseil is not instrumented for ThreadSanitizer, which
// would report correct uses of absl::Mutex. Members that a lock guards are marked with GUARDED_BY
// (absl/base/thread_annotations.h).
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_SYNC_MUTEX_H_
#define LOCKSTEP_COMMON_SYNC_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace lockstep {

class CondVar;

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Waits may end spuriously: callers wait in a loop on their condition.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  // Releases `mutex`, blocks, and holds it again at return.
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }

  // As Wait; returns true when `timeout` passed without a signal.
  bool WaitWithTimeout(Mutex* mutex, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (timeout == absl::InfiniteDuration()) {
      Wait(mutex);
      return false;
    }
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    const auto until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
    const bool timed_out = condition_.wait_until(lock, until) == std::cv_status::timeout;
    lock.release();
    return timed_out;
  }

  void Signal() { condition_.notify_one(); }
  void SignalAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SYNC_MUTEX_H_
