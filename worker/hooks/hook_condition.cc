#include "worker/hooks/hook_condition.h"

#include "common/job/extent.h"

namespace lockstep::worker {

bool HookCondition::MetBy(const HookInstant& instant) const {
  switch (instant.kind) {
    case HookInstant::Kind::kStep:
      return instant.step == step || (every != 0 && instant.step % every == 0);
    case HookInstant::Kind::kNan:
      return on == job::Hook::ON_NAN;
    case HookInstant::Kind::kEvaluation:
      return on == job::Hook::ON_EVALUATION;
    case HookInstant::Kind::kCheckpoint:
      return on == job::Hook::ON_CHECKPOINT;
    case HookInstant::Kind::kEnd:
      return on == job::Hook::ON_END;
  }
  return false;
}

HookCondition ConditionOf(const job::Hook& hook, const JobSpec& job, int64_t epoch_samples) {
  HookCondition condition{.step = static_cast<uint64_t>(hook.step()), .on = hook.on()};
  if (hook.has_every()) {
    const auto steps = StepsOf(hook.every(), epoch_samples, job.train().global_batch_size());
    condition.every = static_cast<uint64_t>(steps.value_or(0));
  }
  return condition;
}

}  // namespace lockstep::worker
