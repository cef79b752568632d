// Decides when a hook of the job acts in a worker, from the step and the event there. All workers decide alike without
// communication (docs/design/0025-hooks.md).
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_HOOKS_HOOK_CONDITION_H_
#define LOCKSTEP_WORKER_HOOKS_HOOK_CONDITION_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/job/job.h"

namespace lockstep::worker {

// An event of training at which hooks may act.
struct HookInstant {
  enum class Kind : uint8_t {
    kStep,        // `step` was applied
    kNan,         // the loss or the gradient of `step` is non-finite
    kEvaluation,  // the state after `step` is about to be evaluated
    kCheckpoint,  // the state after `step` is about to be saved
    kEnd          // the state after `step` is about to be saved, and the job ends with it
  };
  Kind kind = Kind::kStep;
  uint64_t step = 0;
};

// At most one member is set. Without any the condition is never met.
struct HookCondition {
  uint64_t step = 0;
  uint64_t every = 0;
  job::Hook::On on = job::Hook::ON_UNSPECIFIED;

  bool MetBy(const HookInstant& instant) const;
  bool MetBy(absl::Span<const HookInstant> instants) const {
    return std::any_of(instants.begin(), instants.end(), [this](const HookInstant& instant) { return MetBy(instant); });
  }
};

// `epoch_samples`: the size of the job's training set. A hook that acts by time is never met in workers.
HookCondition ConditionOf(const job::Hook& hook, const JobSpec& job, int64_t epoch_samples);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_HOOKS_HOOK_CONDITION_H_
