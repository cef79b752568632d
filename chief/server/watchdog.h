// Ends this process if its loop hangs. A chief that still answers its peers from other threads but decides nothing is
// worse than one that is gone, which its supervisor would restart. No part of the loop waits for a storage, a terminal
// or a peer, so a loop that does not turn is a defect.
//
// Threading: thread-compatible; owns one thread.
#ifndef LOCKSTEP_CHIEF_SERVER_WATCHDOG_H_
#define LOCKSTEP_CHIEF_SERVER_WATCHDOG_H_

#include <functional>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "common/clock/clock.h"
#include "common/liveness/activity.h"
#include "common/liveness/stall_check.h"
#include "common/sync/mutex.h"

namespace lockstep::chief {

class Watchdog {
 public:
  // `since_turn` must not block. `hangs` is called once, on this object's thread, with how long the loop has hung.
  Watchdog(std::function<absl::Duration()> since_turn, std::function<void(absl::Duration)> hangs,
           StallCheck check = StallCheck())
      : since_turn_(std::move(since_turn)), hangs_(std::move(hangs)), check_(check), thread_([this] { Run(); }) {}
  ~Watchdog() {
    {
      MutexLock lock(&mutex_);
      stop_ = true;
      changed_.Signal();
    }
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Run() {
    NameThread("watchdog");
    for (;;) {
      {
        MutexLock lock(&mutex_);
        if (!stop_) changed_.WaitWithTimeout(&mutex_, check_.every());
        if (stop_) return;
      }
      const absl::Duration silent = since_turn_();
      if (check_.HasStalled(SteadyNow(), silent)) return hangs_(silent);
    }
  }

  const std::function<absl::Duration()> since_turn_;
  const std::function<void(absl::Duration)> hangs_;
  StallCheck check_;  // owned by the thread
  Mutex mutex_;
  CondVar changed_;
  bool stop_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_WATCHDOG_H_
