// How long the job has been stepping, under all its chiefs, and when a save is due by time.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_TRAINING_CLOCK_H_
#define LOCKSTEP_CHIEF_CORE_TRAINING_CLOCK_H_

#include "absl/time/time.h"
#include "chief/core/policy.h"

namespace lockstep::chief {

class TrainingClock {
 public:
  // `so_far`: the training time under earlier chiefs.
  explicit TrainingClock(absl::Duration so_far) : trained_for_(so_far) {}

  absl::Duration trained_for() const { return trained_for_; }
  void Stepped(absl::Duration passed) { trained_for_ += passed; }
  // Whether the limit `duration: 2h` was reached.
  bool IsTimeUp(const JobPolicy& policy) const { return trained_for_ >= policy.max_duration; }

  // Restarts the interval after which the next save is due.
  void Saved(absl::Time now) { last_save_ = now; }
  // Whether `every` has passed since then.
  bool IsSaveDue(absl::Time now, absl::Duration every) const { return now - last_save_ >= every; }
  // The job went back to a checkpoint with this training time.
  void GoBack(absl::Duration trained_for, absl::Time now) {
    trained_for_ = trained_for;
    last_save_ = now;
  }
  void ShiftDeadlines(absl::Duration gap) { last_save_ += gap; }

 private:
  absl::Duration trained_for_;
  absl::Time last_save_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_TRAINING_CLOCK_H_
