// When a hook of the job has something to do in a worker: by the step and what happens there, which every worker knows
// without asking (docs/design/0025-hooks.md).
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

// What a replica comes to.
struct HookInstant {
  enum class Kind : uint8_t {
    kStep,        // the state after `step` stands
    kNan,         // the loss or the gradient of `step` is not finite
    kEvaluation,  // the state after `step` is about to be evaluated
    kCheckpoint,  // it is about to be saved
    kEnd          // likewise, and the job ends with it
  };
  Kind kind = Kind::kStep;
  uint64_t step = 0;
};

// Of its members one is set; none: it is never met.
struct HookCondition {
  uint64_t step = 0;
  uint64_t every = 0;
  job::Hook::On on = job::Hook::ON_UNSPECIFIED;

  bool MetBy(const HookInstant& instant) const;
  bool MetBy(absl::Span<const HookInstant> instants) const {
    return std::any_of(instants.begin(), instants.end(), [this](const HookInstant& instant) { return MetBy(instant); });
  }
};

// `epoch_samples`: of the job's training set. Of a time no worker knows: never met.
HookCondition ConditionOf(const job::Hook& hook, const JobSpec& job, int64_t epoch_samples);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_HOOKS_HOOK_CONDITION_H_
