// The clocks that shells read; pure code gets instants as arguments instead.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_CLOCK_CLOCK_H_
#define LOCKSTEP_COMMON_CLOCK_CLOCK_H_

#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace lockstep {

class Clock {
 public:
  virtual ~Clock() = default;
  // The current instant; never goes backwards in the life of the clock.
  virtual absl::Time Now() const = 0;
};

// Starts at the wall clock's time and then follows the machine's monotonic clock: a step of the wall clock neither
// fires nor delays a deadline.
class SteadyClock : public Clock {
 public:
  SteadyClock();
  absl::Time Now() const override;

 private:
  const absl::Time start_;
  const absl::Duration steady_start_;
};

// The time of the one SteadyClock of this process. Deadlines and durations use it; absl::Now() is only for times that
// go to people and files.
absl::Time SteadyNow();

// A clock for tests that moves only by Advance.
class ManualClock : public Clock {
 public:
  explicit ManualClock(absl::Time start) : now_(start) {}
  absl::Time Now() const override {
    MutexLock lock(&mutex_);
    return now_;
  }
  // REQUIRES: `by` is not negative.
  void Advance(absl::Duration by) {
    MutexLock lock(&mutex_);
    now_ += by;
  }

 private:
  mutable Mutex mutex_;
  absl::Time now_ GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLOCK_CLOCK_H_
