#include "chief/checkpoint/retention.h"

#include <algorithm>

namespace lockstep::chief {
namespace {

// Takes checkpoints in the order of their steps, and tells which of them stand for a multiple of a distance.
class MilestoneFinder {
 public:
  explicit MilestoneFinder(int64_t distance) : distance_(distance) {}

  // `at`: of `candidate`, in the unit of the distance; it never gets less.
  bool StandsForMultiple(const RetentionCandidate& candidate, int64_t at) {
    if (distance_ <= 0 || !candidate.stands) return false;
    const int64_t multiple = at / distance_;
    if (multiple <= settled_) return false;
    if (candidate.verified) settled_ = multiple;
    return true;
  }

 private:
  const int64_t distance_;
  int64_t settled_ = 0;  // a verified one stands for this multiple; none is needed for 0
};

}  // namespace

std::vector<std::string> ToRetire(const std::vector<RetentionCandidate>& by_step, const RetentionRule& rule) {
  int64_t newer = std::count_if(by_step.begin(), by_step.end(), [](const RetentionCandidate& candidate) {
    return candidate.verified && candidate.stands;
  });
  MilestoneFinder by_steps(rule.keep_every_steps);
  MilestoneFinder by_time(rule.keep_every_ms);
  std::vector<std::string> names;
  for (const RetentionCandidate& candidate : by_step) {
    if (candidate.verified && candidate.stands) --newer;
    const bool for_steps = by_steps.StandsForMultiple(candidate, candidate.step);
    const bool for_time = by_time.StandsForMultiple(candidate, candidate.trained_ms);
    if (newer < std::max<int64_t>(1, rule.keep_latest)) break;  // neither this one nor a newer one goes
    if (!candidate.needed && !for_steps && !for_time) names.push_back(candidate.name);
  }
  return names;
}

}  // namespace lockstep::chief
