#include "worker/session/boundary.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

TrainingPolicy Policy() {
  TrainingPolicy policy;
  policy.end_step = 100;
  policy.snapshot_every_steps = 10;
  policy.audit_every_steps = 4;
  policy.eval_every_steps = 20;
  policy.eval_slices = 3;
  return policy;
}

// A word of two ranks that are free to save and hear the chief.
ControlWord Word() {
  ControlContribution slot;
  slot.free_to_save = slot.hears_chief = true;
  return ControlWord{{slot, slot}};
}

TEST_CASE("boundary: a request of one rank is everybody's", "[session][rule1]") {
  ControlWord word = Word();
  word.slots[1].request(RequestKind::kForm) = 7;

  const BoundaryWork work = PlanBoundary(Policy(), {5, 0}, word);

  CHECK(work.form);
  CHECK(work.served[static_cast<size_t>(RequestKind::kForm)] == 7);
  CHECK_FALSE(PlanBoundary(Policy(), {5, 0}, Word()).form);
}

TEST_CASE("boundary: a due save needs every rank free and hearing the chief", "[session][rule2]") {
  ControlWord busy = Word();
  busy.slots[0].free_to_save = false;
  ControlWord deaf = Word();
  deaf.slots[1].hears_chief = false;

  CHECK(PlanBoundary(Policy(), {30, 0}, Word()).save == SnapshotCause::kDue);
  CHECK_FALSE(PlanBoundary(Policy(), {30, 0}, busy).save.has_value());
  CHECK_FALSE(PlanBoundary(Policy(), {30, 0}, deaf).save.has_value());
  CHECK_FALSE(PlanBoundary(Policy(), {31, 0}, Word()).save.has_value());
}

TEST_CASE("boundary: where saves wait for each other, one that is due is taken when the earlier one has ended",
          "[session][rule2]") {
  TrainingPolicy policy = Policy();
  policy.wait_for_saves = true;
  ControlWord busy = Word();
  busy.slots[0].free_to_save = false;

  const BoundaryWork due = PlanBoundary(policy, {30, 0}, busy);
  CHECK(due.save == SnapshotCause::kDue);
  CHECK(due.wait_for_earlier);
  CHECK_FALSE(PlanBoundary(policy, {31, 0}, busy).save.has_value());
  CHECK_FALSE(PlanBoundary(policy, {30, 0}, Word()).wait_for_earlier);
  busy.slots[1].request(RequestKind::kSnapshot) = 3;
  CHECK(PlanBoundary(policy, {31, 0}, busy).wait_for_earlier);
  busy.slots[1].hears_chief = false;  // nobody could say that the earlier one ended
  CHECK_FALSE(PlanBoundary(policy, {30, 0}, busy).save.has_value());
}

TEST_CASE("boundary: a save that must wait stays asked for", "[session][rule2]") {
  ControlWord word = Word();
  word.slots[0].free_to_save = false;
  word.slots[0].request(RequestKind::kSnapshot) = 3;

  const BoundaryWork work = PlanBoundary(Policy(), {31, 0}, word);

  CHECK_FALSE(work.save.has_value());
  CHECK(work.served[static_cast<size_t>(RequestKind::kSnapshot)] == 0);
}

TEST_CASE("boundary: the last save and a stop are never skipped", "[session][rule2]") {
  ControlWord word = Word();
  word.slots[0].free_to_save = word.slots[0].hears_chief = false;
  CHECK(PlanBoundary(Policy(), {100, 3}, word).save == SnapshotCause::kEnd);

  word.slots[1].request(RequestKind::kStop) = 2;
  CHECK(PlanBoundary(Policy(), {33, 0}, word).save == SnapshotCause::kStop);
}

TEST_CASE("boundary: the last step is served also where a generation begins", "[session]") {
  CHECK(PlanBoundary(Policy(), {100, 3}, ControlWord{}).save == SnapshotCause::kEnd);
  CHECK_FALSE(PlanBoundary(Policy(), {30, 0}, ControlWord{}).save.has_value());
  CHECK_FALSE(PlanBoundary(Policy(), {8, 0}, ControlWord{}).audit);
}

TEST_CASE("boundary: evaluation goes slice by slice, and what is saved was evaluated", "[session][rule7]") {
  for (uint64_t slice = 0; slice < 3; ++slice) {
    const BoundaryWork work = PlanBoundary(Policy(), {40, slice}, Word());
    CHECK(work.evaluate);
    CHECK_FALSE(work.save.has_value());
    CHECK_FALSE(work.audit);
  }

  const BoundaryWork after = PlanBoundary(Policy(), {40, 3}, Word());
  CHECK_FALSE(after.evaluate);
  CHECK(after.save == SnapshotCause::kDue);
  CHECK(after.audit);
}

TEST_CASE("boundary: a leave or a new generation need not wait for an evaluation", "[session][rule7]") {
  ControlWord word = Word();
  word.slots[0].request(RequestKind::kLeave) = 1;
  word.slots[1].request(RequestKind::kForm) = 4;
  word.slots[1].request(RequestKind::kStop) = 5;

  const BoundaryWork work = PlanBoundary(Policy(), {40, 1}, word);

  CHECK(work.leave);
  CHECK(work.form);
  CHECK_FALSE(work.save.has_value());
  CHECK(work.served[static_cast<size_t>(RequestKind::kStop)] == 0);
}

TEST_CASE("boundary: a job that is to finish evaluates first, and an evaluation that began is finished",
          "[session][rule7]") {
  ControlWord word = Word();
  word.slots[0].request(RequestKind::kFinish) = 9;

  CHECK(PlanBoundary(Policy(), {41, 0}, word).evaluate);
  CHECK(PlanBoundary(Policy(), {41, 0}, word).served[static_cast<size_t>(RequestKind::kFinish)] == 0);
  const BoundaryWork evaluated = PlanBoundary(Policy(), {41, Policy().eval_slices}, word);
  CHECK_FALSE(evaluated.evaluate);
  CHECK(evaluated.save == SnapshotCause::kStop);
  CHECK(evaluated.served[static_cast<size_t>(RequestKind::kFinish)] == 9);
  CHECK(PlanBoundary(Policy(), {41, 1}, ControlWord{}).evaluate);
  CHECK_FALSE(PlanBoundary(Policy(), {41, 0}, ControlWord{}).evaluate);
  CHECK(PlanBoundary(Policy(), {40, 0}, ControlWord{}).evaluate);
}

TEST_CASE("boundary: a leave while somebody does not hear the chief ends the generation", "[session][rule6]") {
  ControlWord word = Word();
  word.slots[0].request(RequestKind::kLeave) = 1;
  CHECK_FALSE(PlanBoundary(Policy(), {5, 0}, word).part);

  word.slots[1].hears_chief = false;
  CHECK(PlanBoundary(Policy(), {5, 0}, word).part);
}

TEST_CASE("boundary: a save that holds comes before one that does not", "[session][rule19]") {
  ControlWord word = Word();
  word.slots[0].request(RequestKind::kSnapshotHold) = 6;

  CHECK(PlanBoundary(Policy(), {30, 0}, word).save == SnapshotCause::kHold);
  word.slots[0].request(RequestKind::kStop) = 7;
  CHECK(PlanBoundary(Policy(), {30, 0}, word).save == SnapshotCause::kStop);
}

TEST_CASE("boundary: the best state is saved even if no save is free, but once", "[session][rule27]") {
  TrainingPolicy policy = Policy();
  policy.evaluation = {.id = 1, .keep_best = true};
  const EvaluationLedger best{.rule = 1, .step = 40, .best_step = 40};
  ControlWord busy = Word();
  busy.slots[0].free_to_save = busy.slots[1].hears_chief = false;

  CHECK(PlanBoundary(policy, {{40, 3}, best}, busy).save == SnapshotCause::kBest);
  CHECK(PlanBoundary(policy, {{40, 3}, best}, ControlWord{}).save == SnapshotCause::kBest);
  CHECK_FALSE(PlanBoundary(policy, {{40, 3}, best, true}, ControlWord{}).save.has_value());
  CHECK_FALSE(PlanBoundary(policy, {{40, 2}, best}, busy).save.has_value());
  CHECK_FALSE(PlanBoundary(policy, {{41, 0}, best}, busy).save.has_value());
  policy.evaluation.keep_best = false;
  CHECK_FALSE(PlanBoundary(policy, {{40, 3}, best}, busy).save.has_value());
}

TEST_CASE("boundary: the job ends where evaluations stopped improving", "[session][rule27]") {
  TrainingPolicy policy = Policy();
  policy.evaluation = {.id = 1, .patience = 2};
  const EvaluationLedger ledger{.rule = 1, .step = 60, .best_step = 20, .stale = 2};

  CHECK(PlanBoundary(policy, {{60, 3}, ledger}, Word()).save == SnapshotCause::kEnd);
  CHECK(PlanBoundary(policy, {{60, 3}, ledger}, ControlWord{}).save == SnapshotCause::kEnd);
  CHECK(PlanBoundary(policy, {{60, 2}, ledger}, Word()).evaluate);
  policy.evaluation.patience = 3;
  CHECK(PlanBoundary(policy, {{60, 3}, ledger}, Word()).save == SnapshotCause::kDue);
}

TEST_CASE("boundary: a hook stops the job at its step, behind the evaluation that is due there", "[session][hooks]") {
  TrainingPolicy policy = Policy();
  policy.stops = {{.step = 33}, {.every = 50}};
  ControlWord deaf = Word();
  deaf.slots[1].hears_chief = false;

  CHECK(PlanBoundary(policy, {{33, 0}}, deaf).save == SnapshotCause::kEnd);
  CHECK(PlanBoundary(policy, {{50, 0}}, Word()).save == SnapshotCause::kEnd);
  CHECK_FALSE(PlanBoundary(policy, {{34, 0}}, Word()).save.has_value());
  policy.stop_after = 33;  // it was stopped there, and goes on
  CHECK_FALSE(PlanBoundary(policy, {{33, 0}}, Word()).save.has_value());
  CHECK(PlanBoundary(policy, {{50, 0}}, Word()).save == SnapshotCause::kEnd);

  policy.stops = {{.on_evaluation = true}};
  CHECK(PlanBoundary(policy, {{40, 2}}, Word()).evaluate);
  CHECK(PlanBoundary(policy, {{40, 3}}, Word()).save == SnapshotCause::kEnd);
  CHECK_FALSE(PlanBoundary(policy, {{41, 0}}, Word()).save.has_value());
}

}  // namespace
}  // namespace lockstep::worker
