// Ends this process when its loop hangs: a chief that answers its peers from other threads and decides nothing is worse
// than one that is gone, for whoever supervises it starts that one again. No part of the loop waits for a storage, a
// terminal or a peer, so a loop that does not turn is a defect.
//
// Threading: WatchdogCheck is thread-compatible; Watchdog owns one thread.
#ifndef LOCKSTEP_CHIEF_SERVER_WATCHDOG_H_
#define LOCKSTEP_CHIEF_SERVER_WATCHDOG_H_

#include <functional>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "common/clock/clock.h"
#include "common/sync/mutex.h"

namespace lockstep::chief {

// Whether a loop hangs, judged from time to time.
class WatchdogCheck {
 public:
  static constexpr absl::Duration kEvery = absl::Seconds(1);
  static constexpr absl::Duration kLimit = absl::Seconds(8);

  // Hangs is called `every` so often; a loop that stands for longer than `limit` hangs.
  explicit WatchdogCheck(absl::Duration every = kEvery, absl::Duration limit = kLimit) : every_(every), limit_(limit) {}

  absl::Duration every() const { return every_; }
  // `since_turn`: how long ago the loop turned. After a longer pause between two calls this process was stopped, and
  // its loop with it: the loop has the whole limit from then on.
  bool Hangs(absl::Time now, absl::Duration since_turn) {
    if (last_ != absl::InfinitePast() && now - last_ > 3 * every_) excused_until_ = now + limit_;
    last_ = now;
    return since_turn > limit_ && now >= excused_until_;
  }

 private:
  absl::Duration every_;
  absl::Duration limit_;
  absl::Time last_ = absl::InfinitePast();
  absl::Time excused_until_ = absl::InfinitePast();
};

class Watchdog {
 public:
  // `since_turn` does not block. `hangs` is called once, on a thread of this object's, with how long the loop stands.
  Watchdog(std::function<absl::Duration()> since_turn, std::function<void(absl::Duration)> hangs,
           WatchdogCheck check = WatchdogCheck())
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
    for (;;) {
      {
        MutexLock lock(&mutex_);
        if (!stop_) changed_.WaitWithTimeout(&mutex_, check_.every());
        if (stop_) return;
      }
      const absl::Duration silent = since_turn_();
      if (check_.Hangs(SteadyNow(), silent)) return hangs_(silent);
    }
  }

  const std::function<absl::Duration()> since_turn_;
  const std::function<void(absl::Duration)> hangs_;
  WatchdogCheck check_;  // owned by the thread
  Mutex mutex_;
  CondVar changed_;
  bool stop_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_WATCHDOG_H_
