// Counts the saves that were due by step number (`checkpoint.every: 500steps`) and skipped, because an earlier one was
// not stored yet or a generation had just begun. Saves that are due by time are only postponed, never skipped.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_SKIPPED_SAVES_H_
#define LOCKSTEP_CHIEF_CORE_SKIPPED_SAVES_H_

#include <algorithm>
#include <cstdint>

namespace lockstep::chief {

class SkippedSaves {
 public:
  // A save is due every `every` steps; 0: none is due by step number. The job continues from step `from`.
  SkippedSaves(uint64_t every, uint64_t from) : every_(every), seen_(from) {}

  // A snapshot of `step` was taken for a save. Returns how many saves were due since the previous one and were skipped.
  // Steps that are trained again count once.
  uint64_t Taken(uint64_t step) {
    if (every_ == 0 || step <= seen_) return 0;
    const uint64_t due_between = (step - 1) / every_ - seen_ / every_;
    seen_ = step;
    count_ += due_between;
    return due_between;
  }
  uint64_t count() const { return count_; }

 private:
  uint64_t every_;
  uint64_t seen_;
  uint64_t count_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_SKIPPED_SAVES_H_
