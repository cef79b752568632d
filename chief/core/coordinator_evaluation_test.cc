// The coordinator and what members say of evaluations: a job that ends early, ledgers in manifests and restores.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

JobPolicy Evaluating() {
  JobPolicy policy;
  policy.training.eval_slices = 2;
  policy.training.eval_every_steps = 10;
  policy.training.evaluation = {.id = 7, .keep_best = true, .patience = 2};
  return policy;
}

EvaluationLedger Ledger(uint64_t step, uint64_t stale) {
  return {.rule = 7, .step = step, .value = 1, .best_step = 10, .best_value = 1, .reference = 1, .stale = stale};
}

// Every member stands at `step` with its evaluation done, and takes a snapshot.
void TakeAll(ChiefHarness& chief, uint64_t step, SnapshotCause cause, const EvaluationLedger& ledger) {
  chief.StepTo(step);
  for (const int index : chief.Members()) {
    FakeWorker& worker = chief.worker(index);
    worker.position.evaluated_slices = 2;
    const SnapshotId snapshot{worker.lineage, step, absl::StrCat("digest-of-", step)};
    worker.snapshots.insert(snapshot);
    chief.Say(index, SnapshotTaken{worker.generation, snapshot, cause, ledger});
  }
}

}  // namespace

TEST_CASE("coordinator: a job whose evaluations no longer improve is done where the members say so", "[core]") {
  ChiefHarness chief({.workers = 2, .end_step = 1000, .policy = Evaluating()});

  TakeAll(chief, 30, SnapshotCause::kEnd, Ledger(30, 2));

  CHECK(chief.Last<StoreManifest>().ledger == Ledger(30, 2));
  CHECK(chief.LastCommand<Done>(1).step == 30);
  CHECK(chief.Last<Exit>().code == 0);
  CHECK_THAT(chief.Said(), Contains("no longer improve"));
}

TEST_CASE("coordinator: a job that a hook stops ends well, with that step published", "[core][hooks]") {
  JobPolicy policy;
  policy.training.stops = {{.step = 30}};
  ChiefHarness chief({.workers = 2, .end_step = 1000, .policy = policy});

  TakeAll(chief, 30, SnapshotCause::kEnd, {});

  CHECK(chief.LastCommand<Done>(1).step == 30);
  CHECK(chief.Last<Exit>().code == 0);
  CHECK_THAT(chief.Said(), Contains("stopped by a hook, step 30 is published"));
}

TEST_CASE("coordinator: a chief that finds the step of a stop published stops, unless the job was stopped there",
          "[core][hooks]") {
  JobPolicy policy;
  policy.training.stops = {{.step = 30}};
  policy.training.stop_after = 29;
  ChiefHarness stops({.workers = 1, .end_step = 1000, .checkpoint_step = 30, .plan = "plan-1", .policy = policy});
  stops.Advance(absl::Seconds(10));
  CHECK_THAT(stops.Said(), Contains("stopped by a hook"));

  policy.training.stop_after = 30;
  ChiefHarness goes_on({.workers = 1, .end_step = 1000, .checkpoint_step = 30, .plan = "plan-1", .policy = policy});
  goes_on.Advance(absl::Seconds(10));
  CHECK_THAT(goes_on.Said(), !Contains("stopped by a hook"));
}

TEST_CASE("coordinator: the best state is saved again until it is published", "[core]") {
  ChiefHarness chief({.workers = 2, .end_step = 1000, .policy = Evaluating()});
  chief.storage_error = "no space left";
  TakeAll(chief, 10, SnapshotCause::kBest, Ledger(10, 0));
  REQUIRE(chief.View().published_step == 0);
  CHECK(chief.Commands<SnapshotEnded>(0).empty());

  chief.storage_error.clear();
  chief.Advance(absl::Seconds(2));

  CHECK(chief.View().published_step == 10);
  CHECK(chief.LastCommand<SnapshotEnded>(0).published);
}

TEST_CASE("coordinator: a restore brings the checkpoint's ledger", "[core]") {
  ChiefHarness chief({.workers = 1, .end_step = 1000, .policy = Evaluating()});
  TakeAll(chief, 20, SnapshotCause::kDue, Ledger(20, 1));
  REQUIRE(chief.View().published_step == 20);

  chief.Kill(0);
  chief.Connect(0);
  chief.Advance(absl::Seconds(10));

  REQUIRE(chief.LastCommand<Form>(0).restore.has_value());
  CHECK(chief.LastCommand<Form>(0).ledger == Ledger(20, 1));
}

TEST_CASE("coordinator: a last state that was published before its evaluation is not the end", "[core]") {
  JobPolicy policy = Evaluating();
  ChiefHarness chief(
      {.workers = 1, .end_step = 20, .checkpoint_step = 20, .plan = "plan-1", .policy = policy, .evaluated = false});
  chief.Advance(absl::Seconds(10));

  CHECK(chief.Count<Exit>() == 0);
  CHECK(chief.LastCommand<Form>(0).position == Position{20, 0});
  chief.StepTo(20);

  CHECK(chief.Count<AmendManifest>() == 1);
  CHECK(chief.Count<PublishCommit>() == 0);
  CHECK(chief.Count<Exit>() == 1);
}

TEST_CASE("coordinator: a checkpoint that was removed before its evaluation was added is saved once more", "[core]") {
  ChiefHarness chief({.workers = 1,
                      .end_step = 20,
                      .checkpoint_step = 20,
                      .plan = "plan-1",
                      .policy = Evaluating(),
                      .evaluated = false});
  chief.Advance(absl::Seconds(10));
  chief.storing = false;
  chief.StepTo(20);
  REQUIRE(chief.Count<AmendManifest>() == 1);

  chief.storing = true;
  chief.Do(StorageFailed{chief.Last<AmendManifest>().snapshot, "it was removed", /*may_pass=*/false});
  chief.Advance(absl::Seconds(2));

  CHECK(chief.Count<PublishCommit>() == 1);
  CHECK(chief.Count<AmendManifest>() == 1);
  REQUIRE(chief.Count<Exit>() == 1);
  CHECK(chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: a replica at rest that finished the last evaluation completes what is published", "[core]") {
  ChiefHarness chief({.workers = 2,
                      .min = 2,
                      .end_step = 20,
                      .checkpoint_step = 20,
                      .plan = "plan-1",
                      .policy = Evaluating(),
                      .evaluated = false});
  chief.Advance(absl::Seconds(10));
  REQUIRE(chief.Members().size() == 2);
  // The last slice ends here when the verdict about its peer is on its way.
  chief.worker(0).position = {20, 2};
  chief.Kill(1);
  chief.Advance(absl::Seconds(30));

  REQUIRE(!chief.Commands<TakeSnapshot>(0).empty());
  CHECK(chief.Count<AmendManifest>() == 1);
  CHECK(chief.LastCommand<Done>(0).step == 20);
}

TEST_CASE("coordinator: an evaluation that ends while its state is being published is written behind it", "[core]") {
  CheckpointTracker tracker({});
  const History history("lineage-1");
  const Incarnation holder{0, 1}, other{0, 2};
  Outbox out(1);
  Roster roster;
  Worker sender;
  sender.member = {holder, "w", "a"};
  roster.Add(sender);
  const SnapshotId state{"lineage-1", 10, "digest-of-10"};
  const CheckpointTracker::Context now{
      .now = absl::UnixEpoch(), .plan_hash = "plan-1", .trained_for = {}, .history = history};
  tracker.Taken(holder, {{}, state, SnapshotCause::kAtRest, {}}, /*evaluated=*/false, {holder}, /*audits=*/false, out,
                roster);
  tracker.Advance(now, out, roster);
  tracker.Stored({state, 0, 1});
  tracker.Advance(now, out, roster);
  tracker.Taken(other, {{}, state, SnapshotCause::kBest, Ledger(10, 0)}, /*evaluated=*/true, {holder, other},
                /*audits=*/true, out, roster);

  tracker.ManifestDone({state, state.digest}, now, out, roster);
  CHECK(tracker.PublishDone(state, absl::FromUnixSeconds(1), out, roster));
  CHECK_FALSE(tracker.published_evaluated());
  tracker.Advance(now, out, roster);
  CHECK(tracker.Busy());
  CHECK(tracker.PublishDone(state, absl::FromUnixSeconds(1), out, roster));

  CHECK(tracker.published_evaluated());
  CHECK(tracker.published_ledger() == Ledger(10, 0));
  tracker.Advance(now, out, roster);
  CHECK_FALSE(tracker.Busy());
}

TEST_CASE("coordinator: equal bits with other evaluations are an alarm, as other bits are", "[core]") {
  ChiefHarness chief({.workers = 2, .end_step = 1000, .policy = Evaluating()});
  chief.StepTo(10);
  for (const int index : {0, 1}) {
    FakeWorker& worker = chief.worker(index);
    worker.position.evaluated_slices = 2;
    const SnapshotId snapshot{worker.lineage, 10, "digest-of-10"};
    chief.Say(index, SnapshotTaken{worker.generation, snapshot, SnapshotCause::kDue, Ledger(10, index)});
  }
  chief.Advance(absl::Seconds(30));

  CHECK(chief.Count<PublishCommit>() == 0);
  CHECK(chief.Last<RecordRepair>().found_at == 10);
  CHECK_THAT(chief.Said(), Contains("evaluations up to step 10"));
}

TEST_CASE("coordinator: evaluations that it missed are told in order, those of an earlier chief are not", "[core]") {
  ChiefHarness chief({.workers = 1, .end_step = 1000, .policy = Evaluating()});
  TakeAll(chief, 20, SnapshotCause::kDue, Ledger(20, 0));
  chief.StepTo(50);
  for (const uint64_t step : {30u, 40u, 50u}) {
    chief.Say(0, EvalReport{"lineage-1", step, {SliceResult{0, {}}, SliceResult{1, {}}}});
  }
  CHECK(chief.Count<EvaluationDone>() == 3);

  ProgressTracker tracker("lineage-1", 20, 2, /*evaluated=*/20);
  tracker.Begin("lineage-1", {{Incarnation{0, 1}, Position{50, 0}}});
  for (const uint64_t step : {10u, 20u, 30u, 40u, 50u}) {
    tracker.AddSlices(EvalReport{"lineage-1", step, {SliceResult{0, {}}, SliceResult{1, {}}}});
  }
  tracker.TakeAgreed();
  std::vector<uint64_t> steps;
  for (const EvaluationDone& done : tracker.TakeEvaluations()) steps.push_back(done.step);
  CHECK(steps == std::vector<uint64_t>{30, 40, 50});
}

TEST_CASE("coordinator: evaluations of a fast job wait for the report of their steps, however many they are",
          "[core]") {
  ProgressTracker tracker("lineage-1", 0, 2, /*evaluated=*/0);
  tracker.Begin("lineage-1", {{Incarnation{0, 1}, Position{0, 0}}});
  for (uint64_t step = 1; step <= 500; ++step) {
    tracker.AddSlices(EvalReport{"lineage-1", step, {SliceResult{0, {}}, SliceResult{1, {}}}});
  }
  CHECK(tracker.TakeEvaluations().empty());
  tracker.Applied(Incarnation{0, 1}, Position{500, 2});
  tracker.TakeAgreed();

  CHECK(tracker.TakeEvaluations().size() == 500);
}

}  // namespace lockstep::chief
