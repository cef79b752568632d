// How long workers wait before a generation is formed from a checkpoint (rules 3, 6 and 12). A restore costs all
// workers time, so it waits briefly for those that are about to join. Below the minimum the job is parked, and it ends
// when `wait_for_min` has passed.
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
  // If the expected number of workers is not known, all are taken to be there once none has come for this long.
  static constexpr absl::Duration kQuiet = absl::Seconds(3);

  // A worker connected.
  void Came(absl::Time now) { last_came_ = now; }
  // Sets the latest instant until which restores wait. There is one last call between two steps: a worker that dies in
  // each restore cannot postpone it for ever.
  void LastCall(absl::Time until) {
    if (!called_) last_call_until_ = until;
    called_ = true;
  }
  void Stepped() { called_ = false; }
  // Restores wait for no further worker; one that comes later joins as usual.
  void NoLastCall(absl::Time now) { last_call_until_ = now; }
  // Whether a restore waits for more workers than `team` has.
  bool AwaitsMore(const CoreContext& context, const GenerationLife& life, const Team& team) const;

  // There are fewer workers than the minimum. Returns true once they were awaited for `wait_for_min`.
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
