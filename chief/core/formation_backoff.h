// Decides how soon a generation is formed after one that broke. If no worker was lost and no step was made, forming
// again at once would probably fail the same way. There is no pause after the first such generation; later pauses
// double. A worker that joins or leaves ends a pause early, but each name only once between two steps of the job, so
// that one flapping worker cannot defeat the pauses.
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

  // A generation broke; `cause` is the first reason that was heard.
  void Broke(const std::string& cause) { cause_ = cause; }
  // All its members are at rest or gone. `fruitless`: it made no step, and no worker was lost.
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
  // The number of generations in a row that broke without a step although no worker was lost.
  uint32_t fruitless() const { return fruitless_; }
  // Why the newest of them broke.
  const std::string& cause() const { return cause_; }
  void ShiftDeadlines(absl::Duration gap) { until_ += gap; }

 private:
  absl::Time until_ = absl::InfinitePast();
  uint32_t fruitless_ = 0;
  std::set<std::string> ended_by_;  // names that ended a pause since the last step
  std::string cause_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_FORMATION_BACKOFF_H_
