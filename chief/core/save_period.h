// The time between saves with `checkpoint.every: auto`: the interval that minimises the cost of saves plus the expected
// loss by failures (J. W. Young 1974, J. T. Daly 2006), from what this chief has measured.
//
//   * The cost of a save is the extra time that steps take while a save is requested or under way. Steps behind an
//     evaluation are not measured, nor is the time in which the storage refuses.
//   * A state is lost when all workers that hold it are lost. How often that happens cannot be measured in advance, so
//     the rate of losses of single workers is used: one cause may take them all. One loss in 24 hours of worker time is
//     always added to the measured ones.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_SAVE_PERIOD_H_
#define LOCKSTEP_CHIEF_CORE_SAVE_PERIOD_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/protocol/training_policy.h"

namespace lockstep::chief {

// Daly's estimate of the best time between two saves, each of which costs `cost`, where failures are `between_failures`
// apart. REQUIRES: both > 0.
absl::Duration DalyInterval(absl::Duration cost, absl::Duration between_failures);

class SavePeriod {
 public:
  static constexpr absl::Duration kFirst = absl::Minutes(1);  // until a save was measured
  static constexpr absl::Duration kLeast = absl::Seconds(5);
  static constexpr absl::Duration kMost = absl::Hours(1);
  static constexpr absl::Duration kAssumed = absl::Hours(24);  // worker time between two losses

  // An interval of the job's running time.
  struct Span {
    absl::Duration passed;
    int members = 0;
    uint64_t agreed = 0;   // the newest agreed step at the end of the interval
    bool saving = false;   // a save was requested or under way
    bool trouble = false;  // the storage refuses
  };

  // A generation begins; its workers may be further than the agreed step, so its first steps are not measured.
  void Begin() { open_.counts = false; }
  // The generation trained for an interval. `policy` says after which steps an evaluation runs.
  void Ran(const TrainingPolicy& policy, const Span& span);
  // A save was published.
  void Saved();
  // A worker was lost, preempted or crashed.
  void Lost() { ++losses_; }

  absl::Duration Every() const;
  // A message for people, whenever Every() has changed by a quarter since the last message; empty otherwise.
  std::string News();

 private:
  // Every so many saves the weight of earlier measurements is halved, so that a storage that became slow is noticed.
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
