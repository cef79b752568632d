// How a worker leaves that was told to (SIGTERM, a notice): it has some time left, asks to be let go at a boundary, and
// ends by itself when the time is over.
//
// Threading: thread-compatible; owned by SessionCore.
#ifndef LOCKSTEP_WORKER_SESSION_GRACE_PERIOD_H_
#define LOCKSTEP_WORKER_SESSION_GRACE_PERIOD_H_

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

namespace lockstep::worker {

class GracePeriod {
 public:
  bool begun() const { return begun_; }
  // When this process ends by itself.
  absl::Time end() const { return end_; }
  absl::Duration Left(absl::Time now) const { return std::max(end_ - now, absl::ZeroDuration()); }
  bool IsOver(absl::Time now) const { return begun_ && now >= end_; }

  // The process is killed in `grace`. False: it had begun already; the shorter one counts.
  bool Begin(absl::Time now, absl::Duration grace) {
    // Leave the last moments to the shell: a process that is killed says no goodbye.
    end_ = std::min(end_, now + grace - std::min(absl::Milliseconds(500), grace / 10));
    return !std::exchange(begun_, true);
  }

  // Whether to ask at the next boundary: of a chief at once; without one, who would be missed, only when the end is
  // `late_leave` away.
  bool AsksToLeave(absl::Time now, bool hears_chief, absl::Duration late_leave) const {
    return begun_ && (hears_chief || now >= end_ - late_leave);
  }

 private:
  bool begun_ = false;
  absl::Time end_ = absl::InfiniteFuture();
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_GRACE_PERIOD_H_
