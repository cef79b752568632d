#include "worker/session/boundary.h"

#include <algorithm>

namespace lockstep::worker {
namespace {

bool Every(uint64_t period, uint64_t step) { return period != 0 && step != 0 && step % period == 0; }

bool AllHearChief(const ControlWord& word) {
  return std::all_of(word.slots.begin(), word.slots.end(),
                     [](const ControlContribution& slot) { return slot.hears_chief; });
}

}  // namespace

BoundaryWork PlanBoundary(const TrainingPolicy& policy, const ReplicaProgress& standing, const ControlWord& word) {
  const Position position = standing.position;
  BoundaryWork work;
  const bool fresh = word.slots.empty();  // nothing was computed in this generation yet
  auto asked = [&](RequestKind kind) { return word.Highest(kind) != 0; };
  auto serve = [&](RequestKind kind) { work.served[static_cast<size_t>(kind)] = word.Highest(kind); };

  work.leave = !word.LeavingRanks().empty();
  work.part = work.leave && !AllHearChief(word);
  work.form = asked(RequestKind::kForm);
  serve(RequestKind::kForm);

  const bool unfinished = position.evaluated_slices < policy.eval_slices;
  const bool begun = position.evaluated_slices > 0;
  if (unfinished && (begun || EvaluationDue(policy, position.step) || asked(RequestKind::kFinish))) {
    work.evaluate = true;
    return work;
  }

  work.audit = !fresh && Every(policy.audit_every_steps, position.step);

  const EvaluationRule& rule = policy.evaluation;
  if (EndsAt(policy, position.step, standing.ledger)) {
    work.save = SnapshotCause::kEnd;
  } else if (asked(RequestKind::kStop) || asked(RequestKind::kFinish)) {
    work.save = SnapshotCause::kStop;
  } else if (rule.keep_best && !standing.published && IsBest(rule, standing.ledger, position.step)) {
    work.save = SnapshotCause::kBest;
  } else if (!fresh && AllHearChief(word)) {
    const bool due = asked(RequestKind::kSnapshot) || Every(policy.snapshot_every_steps, position.step);
    if (word.AllFreeToSave()) {
      if (asked(RequestKind::kSnapshotHold)) {
        work.save = SnapshotCause::kHold;
      } else if (due) {
        work.save = SnapshotCause::kDue;
      }
    } else if (due && policy.wait_for_saves) {
      work.save = SnapshotCause::kDue;
      work.wait_for_earlier = true;
    }
  }
  if (work.save.has_value()) {
    serve(RequestKind::kSnapshot);
    serve(RequestKind::kSnapshotHold);
    serve(RequestKind::kStop);
    serve(RequestKind::kFinish);
  }
  return work;
}

}  // namespace lockstep::worker
