// How long the newest steps of this process took, each by itself: a step lasts from the end of the one before to its
// own end, with all that it waited for. The first one after something else (another generation, an evaluation) lasts
// from its own begin. Time is an argument.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_STEP_STEP_DURATIONS_H_
#define LOCKSTEP_WORKER_STEP_STEP_DURATIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace lockstep::worker {

class StepDurations {
 public:
  static constexpr size_t kWindow = 1024;

  // A step that began to compute at `begin` was applied at `end`.
  void Applied(absl::Time begin, absl::Time end) {
    const float ms = static_cast<float>(absl::ToDoubleMilliseconds(end - std::min(begin, before_)));
    if (newest_.size() < kWindow) {
      newest_.push_back(ms);
    } else {
      newest_[next_] = ms;
    }
    next_ = (next_ + 1) % kWindow;
    before_ = end;
  }
  // What comes next does not go on from the step before.
  void Interrupted() { before_ = absl::InfiniteFuture(); }

  // The time in milliseconds that a share `quantile` of the newest 1,024 steps does not exceed (nearest rank); 0
  // without steps.
  double QuantileMs(double quantile) const {
    if (newest_.empty()) return 0;
    std::vector<float> sorted = newest_;
    const auto rank = static_cast<size_t>(quantile * static_cast<double>(sorted.size() - 1) + 0.5);
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(rank), sorted.end());
    return static_cast<double>(sorted[rank]);
  }

 private:
  std::vector<float> newest_;                   // a ring once it is full
  size_t next_ = 0;                             // the oldest of a full ring
  absl::Time before_ = absl::InfiniteFuture();  // the end of the step before, where the next one goes on from it
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_STEP_DURATIONS_H_
