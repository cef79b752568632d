// Counts where the time of a job goes (Goodput of protos/stats.proto), by what its chief sees. No clock inside: time is
// an argument, of a monotonic clock.
//
// Invariant: totals never shrink. While a generation runs, the time since the newest agreed step is in none of them:
// only its end shows whether it was a step or a stall.
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_TIMELINE_GOODPUT_CLOCK_H_
#define LOCKSTEP_CHIEF_TIMELINE_GOODPUT_CLOCK_H_

#include "absl/time/time.h"
#include "chief/core/coordinator_view.h"
#include "protos/stats.pb.h"

namespace lockstep::chief {

class GoodputClock {
 public:
  // Continues from the totals of earlier chiefs.
  void StartFrom(absl::Time now, const Goodput& before);

  // The job enters this phase at `now`.
  void EnterPhase(absl::Time now, Phase phase);
  // A step was agreed. Has an effect only in the phase Running.
  void Agreed(absl::Time now);

  Goodput Totals(absl::Time now) const;

 private:
  Goodput totals_;
  Phase phase_ = Phase::kAdopting;
  absl::Time since_;  // the time before is in totals_
};

// How long the job had no chief, in seconds, since `before` was written. 0 if that chief ended with kExitDone: the job
// was done, or people had stopped it. `now_ms`: since 1970.
double SecondsWithoutChief(const JobStats& before, int64_t now_ms);

// The fraction of all time that went into agreed steps, from 0 to 1; 0 before the first second.
double GoodputShare(const Goodput& goodput);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TIMELINE_GOODPUT_CLOCK_H_
