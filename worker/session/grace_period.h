// The grace period of a worker that was told to leave (SIGTERM, a notice): it asks to leave at a boundary, and exits by
// itself when the period is over.
//
// Threading: owned by SessionCore.
#ifndef LOCKSTEP_WORKER_SESSION_GRACE_PERIOD_H_
#define LOCKSTEP_WORKER_SESSION_GRACE_PERIOD_H_

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

namespace lockstep::worker {

class GracePeriod {
 public:
  bool begun() const { return begun_; }
  // When this process exits by itself.
  absl::Time end() const { return end_; }
  absl::Duration Left(absl::Time now) const { return std::max(end_ - now, absl::ZeroDuration()); }
  bool IsOver(absl::Time now) const { return begun_ && now >= end_; }

  // The process will be killed in `grace`. False: a period had begun already; the earlier end counts.
  bool Begin(absl::Time now, absl::Duration grace) {
    // Reserve the last moments for the shell, which needs them to flush messages before the kill.
    end_ = std::min(end_, now + grace - std::min(absl::Milliseconds(500), grace / 10));
    return !std::exchange(begun_, true);
  }

  // Whether to ask at the next boundary to leave: at once if there is a chief, which can replace this worker; without a
  // chief only when the end is `late_leave` away, since leaving ends the generation.
  bool AsksToLeave(absl::Time now, bool hears_chief, absl::Duration late_leave) const {
    return begun_ && (hears_chief || now >= end_ - late_leave);
  }

 private:
  bool begun_ = false;
  absl::Time end_ = absl::InfiniteFuture();
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_GRACE_PERIOD_H_
