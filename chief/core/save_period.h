// How far apart saves are with `checkpoint.every: auto`: the distance at which what saves cost and what a failure would
// take are smallest together (J. W. Young 1974, J. T. Daly 2006), from what this chief has measured.
//
//   * A save costs what steps take longer than others while one is asked for or under way. Steps after which an
//     evaluation ran say nothing, nor does the time in which the storage refuses.
//   * A state is lost when every worker that holds it is. How often that happens is not known before it did, so it is
//     assumed to be as often as one worker is lost: what takes one may take all. Until workers were lost, one loss in
//     24 hours of a worker is assumed.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_SAVE_PERIOD_H_
#define LOCKSTEP_CHIEF_CORE_SAVE_PERIOD_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/protocol/training_policy.h"

namespace lockstep::chief {

// Daly's estimate of the time between two saves that cost `cost` each, where failures are `between_failures` apart.
// REQUIRES: both > 0.
absl::Duration DalyInterval(absl::Duration cost, absl::Duration between_failures);

class SavePeriod {
 public:
  static constexpr absl::Duration kFirst = absl::Minutes(1);  // until a save was measured
  static constexpr absl::Duration kLeast = absl::Seconds(5);
  static constexpr absl::Duration kMost = absl::Hours(1);
  static constexpr absl::Duration kAssumed = absl::Hours(24);  // of a worker, between two losses

  // What the job did for a while.
  struct Span {
    absl::Duration passed;
    int members = 0;
    uint64_t agreed = 0;   // the newest agreed step at its end
    bool saving = false;   // a save was asked for or under way
    bool trouble = false;  // the storage refuses
  };

  // A generation begins, maybe one of workers that are further than was agreed: its first steps are not measured.
  void Begin() { open_.counts = false; }
  // The generation trained. `policy` says after which steps an evaluation runs.
  void Ran(const TrainingPolicy& policy, const Span& span);
  // A save was published.
  void Saved();
  // A worker was lost, preempted or crashed.
  void Lost() { ++losses_; }

  absl::Duration Every() const;
  // Not empty once whenever Every has changed by a quarter since it was told: what it is now, and why.
  std::string News();

 private:
  // Forgets the older half of what was measured, so that a storage that became slow is noticed.
  static constexpr int kSavesRemembered = 32;

  struct Time {
    absl::Duration passed;
    double steps = 0;
  };

  // The time since the newest agreed step, until more are agreed.
  struct Open {
    uint64_t from = 0;
    absl::Duration took = absl::ZeroDuration();
    bool saving = false;
    bool counts = true;
  };

  absl::Duration Cost() const;
  absl::Duration BetweenLosses() const { return (worker_time_ + kAssumed) / (losses_ + 1); }

  Open open_;
  Time saving_;
  Time calm_;
  double saves_ = 0;
  absl::Duration worker_time_;
  int64_t losses_ = 0;
  absl::Duration told_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_SAVE_PERIOD_H_
