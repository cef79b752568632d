// How long a worker may compute without executing a node or moving a byte (rule 17). A worker that is given up for
// standing still has twice as long the next time, as one of its kernels may need that. Its next step decides: a pause
// that it survived counts as normal from then on, for every worker, until many steps were made without such a pause; if
// there was none, its limit is the old one again.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_NO_PROGRESS_H_
#define LOCKSTEP_CHIEF_CORE_NO_PROGRESS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "chief/core/limits.h"

namespace lockstep::chief {

class NoProgressLimit {
 public:
  static constexpr uint32_t kMaxDoublings = 10;
  static constexpr uint32_t kForgetAfter = 10000;  // steps of members

  explicit NoProgressLimit(absl::Duration least) : least_(least), normal_(least) {}

  absl::Duration Of(const std::string& name) const {
    const auto found = doublings_.find(name);
    return found == doublings_.end() ? normal_ : normal_ * (int64_t{1} << found->second);
  }
  // The worker of this name stood still for longer than its limit and was given up.
  void Lost(const std::string& name) {
    if (doublings_.size() >= kMaxWorkers && doublings_.count(name) == 0) return;
    uint32_t& doublings = doublings_[name];
    doublings = std::min(doublings + 1, kMaxDoublings);
  }
  // A computing worker went on after it had made no progress for `stood_still`.
  void WentOn(absl::Duration stood_still) { longest_ = std::max(longest_, stood_still); }
  // Whether Stepped would change anything, for some worker.
  bool IsRaised() const { return !doublings_.empty() || longest_ > least_ || normal_ > least_; }
  // The worker of this name was a member when all members applied another step.
  void Stepped(const std::string& name) {
    if (longest_ > normal_) normal_ = 2 * longest_;
    calm_ = longest_ > normal_ / 4 ? 0 : calm_ + 1;
    if (calm_ >= kForgetAfter) {
      normal_ = std::max(least_, normal_ / 2);
      calm_ = 0;
    }
    longest_ = absl::ZeroDuration();
    doublings_.erase(name);
  }

 private:
  absl::Duration least_;
  absl::Duration normal_;
  uint32_t calm_ = 0;       // steps in a row that needed no raised limit
  absl::Duration longest_;  // the longest pause that a worker survived since the last step
  std::map<std::string, uint32_t> doublings_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_NO_PROGRESS_H_
