// Decides at which audits a worker keeps a copy of its state in memory, to return to quickly if replicas differ (rule
// 22).
//
// Making a copy delays the next step, so at least kCostShare times its cost passes before the next copy. A copy must
// also exist until the chief has compared the replicas' digests and, if they differ, has stopped all members. Two
// copies are held, and a new one replaces the older; with copies at least kApart apart, one of the two is older than
// any difference that is not yet resolved.
//
// Threading: owned by KeptCopies.
#ifndef LOCKSTEP_WORKER_SESSION_KEEP_POLICY_H_
#define LOCKSTEP_WORKER_SESSION_KEEP_POLICY_H_

#include <algorithm>

#include "absl/time/time.h"

namespace lockstep::worker {

class KeepPolicy {
 public:
  static constexpr int kCostShare = 200;  // 0.5% of the time
  // Longer than it takes to report an audit, to gather all members' reports and to end a generation.
  static constexpr absl::Duration kApart = absl::Seconds(5);

  // Whether to keep a copy at the audit at `now`.
  bool IsDue(absl::Time now) const { return now >= next_; }
  // Records that a copy begun at `begin` delayed the next step by `cost`; zero if it was not made.
  void Took(absl::Time begin, absl::Duration cost) { next_ = begin + std::max(kApart, kCostShare * cost); }

 private:
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_KEEP_POLICY_H_
