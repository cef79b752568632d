// The settings of a job that decide when a replica saves, evaluates, audits and stops. Every rank has the same policy,
// so ranks need no agreement on what follows from it and the step.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_TRAINING_POLICY_H_
#define LOCKSTEP_COMMON_PROTOCOL_TRAINING_POLICY_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/evaluation.h"
#include "common/protocol/fields.h"
#include "common/protocol/ids.h"

namespace lockstep {

// Where a hook with `stop` ends the job; one of the three is set.
struct StopRule {
  uint64_t step = 0;           // at this step
  uint64_t every = 0;          // at each multiple
  bool on_evaluation = false;  // at each step with an evaluation
  LS_FIELDS(StopRule, step, every, on_evaluation)
};

struct TrainingPolicy {
  uint64_t end_step = 0;              // the job is done at this step
  uint64_t snapshot_every_steps = 0;  // 0: saves come by request only
  // When a save is due while an earlier one is not stored yet: true waits for the earlier one, false skips this one.
  bool wait_for_saves = false;
  uint64_t audit_every_steps = 16;  // 0: never
  uint64_t eval_every_steps = 0;    // 0: only at end_step (if eval_slices is not 0)
  uint64_t eval_slices = 0;         // 0: the job does not evaluate
  EvaluationRule evaluation;
  bool samples_text = false;  // rank 0 generates text with the model after each evaluation
  Digest settings;            // of settings that may change at a resume and are built into a replica (MadeWithSettings)
  uint32_t logical_shards = 1;
  bool digest_in_acks = false;  // `reduction: fast`: equal positions do not mean equal bits (rule 8)
  absl::Duration heartbeat_interval = absl::Milliseconds(500);
  absl::Duration report_interval = absl::Milliseconds(200);
  absl::Duration retry_interval = absl::Seconds(1);   // between attempts to reach the chief: randomly 1/2 to 1 of it
  absl::Duration chief_timeout = absl::Seconds(600);  // how long a parked worker keeps its state without a chief
  absl::Duration abort_limit = absl::Seconds(10);     // an abort that does not return ends the process
  absl::Duration grace_period = absl::Seconds(25);    // from SIGTERM to the end of a worker
  absl::Duration late_leave = absl::Seconds(5);       // without a chief, a leaver asks this long before its grace ends
  std::vector<StopRule> stops;
  uint64_t stop_after = 0;  // `stops` apply to later steps only: earlier ones were served

  LS_FIELDS(TrainingPolicy, end_step, snapshot_every_steps, wait_for_saves, audit_every_steps, eval_every_steps,
            eval_slices, evaluation, samples_text, settings, logical_shards, digest_in_acks, heartbeat_interval,
            report_interval, retry_interval, chief_timeout, abort_limit, late_leave, grace_period, stops, stop_after)
};

// Whether the state at `step` is evaluated (never at step 0).
inline bool EvaluationDue(const TrainingPolicy& policy, uint64_t step) {
  if (step == 0 || policy.eval_slices == 0) return false;
  return step == policy.end_step || (policy.eval_every_steps != 0 && step % policy.eval_every_steps == 0);
}

// Whether a hook stops the job at this step. The job continues from there when it is started again.
inline bool StopsAt(const TrainingPolicy& policy, uint64_t step) {
  if (step <= policy.stop_after) return false;
  return std::any_of(policy.stops.begin(), policy.stops.end(), [&](const StopRule& rule) {
    if (rule.on_evaluation) return EvaluationDue(policy, step);
    return step == rule.step || (rule.every != 0 && step % rule.every == 0);
  });
}

// Whether the job ends at this position: at its last step, where evaluations stopped improving, or where a hook stops
// it.
inline bool EndsAt(const TrainingPolicy& policy, uint64_t step, const EvaluationLedger& ledger) {
  return step >= policy.end_step || EndsEarly(policy.evaluation, ledger, step) || StopsAt(policy, step);
}

// The position of a state restored from the checkpoint of `step`. An evaluation that is due there counts as completed.
inline Position RestoredPosition(const TrainingPolicy& policy, uint64_t step) {
  return Position{step, EvaluationDue(policy, step) ? policy.eval_slices : 0};
}

struct NamedValue {
  std::string name;
  double value = 0;
  LS_FIELDS(NamedValue, name, value)
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_TRAINING_POLICY_H_
