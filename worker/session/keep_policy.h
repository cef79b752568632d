// When a worker keeps a copy of its state in memory, for a way back that is short after replicas differed (rule 22).
//
// A copy costs time between two steps, so that at least kCostShare times as long passes before the next one. And it has
// to stay until the chief has compared the state with those of the others and, where they differ, has told everybody to
// stop: a newer copy replaces the one before the last. So copies are at least kApart apart: of two that are held one is
// then older than any difference that is still being looked into.
//
// Threading: thread-compatible; owned by KeptCopies.
#ifndef LOCKSTEP_WORKER_SESSION_KEEP_POLICY_H_
#define LOCKSTEP_WORKER_SESSION_KEEP_POLICY_H_

#include <algorithm>

#include "absl/time/time.h"

namespace lockstep::worker {

class KeepPolicy {
 public:
  static constexpr int kCostShare = 200;  // 0.5% of the time
  // Longer than it takes to report an audit, to gather those of all members and to end a generation.
  static constexpr absl::Duration kApart = absl::Seconds(5);

  // Whether the audit at `now` is one at which a copy is kept. What copies cost is known after the first.
  bool IsDue(absl::Time now) const { return now >= next_; }
  // The copy that was begun at `begin` held up the next step for `cost`; zero where it was not made.
  void Took(absl::Time begin, absl::Duration cost) { next_ = begin + std::max(kApart, kCostShare * cost); }

 private:
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_KEEP_POLICY_H_
