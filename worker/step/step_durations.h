// The durations of the latest steps of this process. A step lasts from the end of the previous step to its own end,
// waits included. The first step after an interruption (another generation, an evaluation) lasts from its own begin.
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

  // Call when a step that began at `begin` was applied at `end`.
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
  // The next step does not directly follow the previous one.
  void Interrupted() { before_ = absl::InfiniteFuture(); }

  // The quantile, in [0, 1], of the durations of the latest kWindow steps in milliseconds: the duration at that
  // share of the sorted ones; 0 without steps.
  double QuantileMs(double quantile) const {
    if (newest_.empty()) return 0;
    std::vector<float> sorted = newest_;
    const auto rank = static_cast<size_t>(quantile * static_cast<double>(sorted.size() - 1) + 0.5);
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(rank), sorted.end());
    return static_cast<double>(sorted[rank]);
  }

 private:
  std::vector<float> newest_;                   // a ring buffer
  size_t next_ = 0;                             // index of the next entry; in a full ring the oldest
  absl::Time before_ = absl::InfiniteFuture();  // the end of the previous step; after an interruption the far future
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_STEP_DURATIONS_H_
