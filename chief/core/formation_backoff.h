// How soon a generation is formed after one that broke. Where nobody was lost and no step was made, forming again at
// once would break again at once: after the first such generation there is no pause, then one that doubles. A worker
// that is new, or gone, ends a pause early, each name once between two steps of the job, so that a worker that comes
// and goes does not undo the pauses.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_FORMATION_BACKOFF_H_
#define LOCKSTEP_CHIEF_CORE_FORMATION_BACKOFF_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "chief/core/limits.h"

namespace lockstep::chief {

class FormationBackoff {
 public:
  static constexpr absl::Duration kFirst = absl::Milliseconds(100);
  static constexpr absl::Duration kLongest = absl::Seconds(10);
  static constexpr uint32_t kMostDoublings = 16;

  // A generation broke, and this is the first that was heard of why.
  void Broke(const std::string& cause) { cause_ = cause; }
  // All its members are at rest or gone. `fruitless`: it made no step, and nobody was lost.
  void Concluded(bool fruitless, absl::Time now) {
    fruitless_ = fruitless ? fruitless_ + 1 : 0;
    if (!fruitless) ended_by_.clear();
    if (fruitless_ < 2) return;
    until_ = now + std::min(kFirst * (int64_t{1} << std::min(fruitless_ - 2, kMostDoublings)), kLongest);
  }
  // True when this name ended a pause.
  bool EndEarly(const std::string& name, absl::Time now) {
    if (!Pauses(now) || ended_by_.size() >= kMaxWorkers || !ended_by_.insert(name).second) return false;
    until_ = now;
    return true;
  }

  bool Pauses(absl::Time now) const { return now < until_; }
  absl::Time until() const { return until_; }
  // Generations in a row that broke without a step, nobody having been lost.
  uint32_t fruitless() const { return fruitless_; }
  // Of the newest one that broke.
  const std::string& cause() const { return cause_; }
  void ShiftDeadlines(absl::Duration gap) { until_ += gap; }

 private:
  absl::Time until_ = absl::InfinitePast();
  uint32_t fruitless_ = 0;
  std::set<std::string> ended_by_;  // since the last step
  std::string cause_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_FORMATION_BACKOFF_H_
