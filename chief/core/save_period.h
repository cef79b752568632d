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

  // So much time of workers was spent on training.
  void Ran(absl::Duration worker_time) { worker_time_ += worker_time; }
  // `steps` steps took so long. `saving`: a save was asked for or under way meanwhile. REQUIRES: steps > 0.
  void Stepped(absl::Duration took, uint64_t steps, bool saving);
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

  absl::Duration Cost() const;
  absl::Duration BetweenLosses() const { return (worker_time_ + kAssumed) / (losses_ + 1); }

  Time saving_;
  Time calm_;
  double saves_ = 0;
  absl::Duration worker_time_;
  int64_t losses_ = 0;
  absl::Duration told_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_SAVE_PERIOD_H_
