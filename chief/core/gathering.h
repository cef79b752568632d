// How long nobody steps (rules 3, 6 and 12): a restore costs all workers the same, so it waits a moment for those that
// are coming; below the minimum the job is parked, and ends when its patience does.
//
//   1 last call ──everybody who may be counted on is here, or time passed──▶ 2 restores
//   3 parked    ──the minimum is here──▶ 1        └──wait_for_min passed──▶ 4 saves what is held, and ends
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_GATHERING_H_
#define LOCKSTEP_CHIEF_CORE_GATHERING_H_

#include <algorithm>
#include <optional>

#include "absl/time/time.h"
#include "chief/core/core_context.h"
#include "chief/core/generation_life.h"
#include "chief/core/team_choice.h"

namespace lockstep::chief {

class Gathering {
 public:
  // Where nobody said how many workers to expect: they are all there when none came for so long.
  static constexpr absl::Duration kQuiet = absl::Seconds(3);

  // A worker came.
  void Came(absl::Time now) { last_came_ = now; }
  // Restores wait until then at most. Between two steps there is one last call: who dies in each restore must not put
  // it off for ever.
  void LastCall(absl::Time until) {
    if (!called_) last_call_until_ = until;
    called_ = true;
  }
  void Stepped() { called_ = false; }
  // They wait for nobody: who comes later joins as ever.
  void NoLastCall(absl::Time now) { last_call_until_ = now; }
  // Whether a restore waits for more than `team`.
  bool AwaitsMore(const CoreContext& context, const GenerationLife& life, const Team& team) const;

  // There are fewer than the minimum. True when they were waited for long enough.
  bool Park(const CoreContext& context) {
    if (!parked_since_.has_value()) parked_since_ = context.now;
    return context.Passed(*parked_since_ + context.policy.wait_for_min);
  }
  void EndPark() { parked_since_.reset(); }

  // The next instant after `now` at which time alone ends the wait of a restore.
  absl::Time NextDeadline(absl::Time now, const JobPolicy& policy) const;
  void ShiftDeadlines(absl::Duration gap) {
    last_call_until_ += gap;
    last_came_ += gap;
    if (parked_since_.has_value()) *parked_since_ += gap;
  }

 private:
  absl::Time last_call_until_;
  bool called_ = false;  // since the newest step
  absl::Time last_came_ = absl::InfinitePast();
  std::optional<absl::Time> parked_since_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_GATHERING_H_
