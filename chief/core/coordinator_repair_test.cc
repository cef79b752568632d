// The way back after replicas differed: when it fails, comes again, or comes late (rule 22).
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"
#include "chief/core/repair_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("coordinator: a second difference soon after the first stops the job, or leaves out who was named twice",
          "[core][rule22]") {
  const uint32_t min = GENERATE(1u, 3u);
  const int second = GENERATE(1, 2);
  const uint64_t later = GENERATE(32ul, 48 + AuditRepair::kSoon + 1);
  CAPTURE(min, second, later);
  ChiefHarness chief({.workers = 3, .min = min, .end_step = 5000});
  FlipAt(chief, 48, 1);
  GoBackTo(chief, 32);
  chief.NewProcess(1);
  chief.Connect(1);
  chief.Advance(absl::Seconds(1));
  chief.MeetAtBoundary();
  chief.Advance(absl::Seconds(1));
  REQUIRE(chief.Members().size() == 3);

  // The newcomer is a copy of one of the others until all have agreed once.
  chief.StepTo(33);
  for (int i : {0, 1, 2}) chief.Audit(i);
  FlipAt(chief, std::max<uint64_t>(later, 34), second);
  REQUIRE(chief.Count<RecordRepair>() == 2);
  CHECK(chief.Last<RecordRepair>().lineage == "lineage-1~2");
  CHECK(chief.Last<RecordRepair>().hosts == std::vector<std::string>{absl::StrCat("host-", second)});
  GoBackTo(chief, 32);

  if (later > 48 + AuditRepair::kSoon) {
    CHECK_FALSE(chief.ended());
    CHECK(chief.worker(second).exit_code == 75);
  } else if (second != 1 || min == 3) {
    CHECK(chief.Last<Exit>().code == 70);
    CHECK_THAT(chief.Last<Exit>().reason, Contains("second time") && Contains("from step 32"));
  } else {
    CHECK_FALSE(chief.ended());
    chief.NewProcess(1);
    chief.Connect(1);
    CHECK(chief.worker(1).exit_code == 78);
    CHECK(chief.LastCommand<Form>(0).members.size() == 2);
  }
}

TEST_CASE("coordinator: the way back waits for a storage that refuses, and ends where nothing audited is left",
          "[core][rule22]") {
  ChiefHarness chief({.workers = 2});
  FlipAt(chief, 48, 1);
  const RecordRepair order = chief.Last<RecordRepair>();
  const bool may_pass = GENERATE(false, true);

  chief.Do(RepairFailed{order.lineage, "no audited checkpoint", may_pass});

  if (!may_pass) {
    CHECK(chief.Last<Exit>().code == 74);
    CHECK_THAT(chief.Last<Exit>().reason, Contains("no audited checkpoint"));
    return;
  }
  CHECK_FALSE(chief.ended());
  chief.Advance(absl::Seconds(3));
  REQUIRE(chief.Count<RecordRepair>() == 2);
  CHECK(chief.Last<RecordRepair>() == order);
  GoBackTo(chief, 0);
  CHECK(chief.LastCommand<Form>(1).lineage == order.lineage);
}

TEST_CASE("coordinator: a way back that the storage refused waits for nobody who comes back meanwhile",
          "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(48);
  chief.worker(1).digest_suffix = "-flipped";
  for (int i : {0, 1}) chief.Audit(i);
  chief.Reset(2);
  REQUIRE(chief.Count<RecordRepair>() == 1);
  const RecordRepair order = chief.Last<RecordRepair>();
  chief.Do(RepairFailed{order.lineage, "no space left", /*may_pass=*/true});

  chief.Connect(2);
  REQUIRE(chief.worker(2).generation.IsNone());  // it never told its digest of that step
  chief.Advance(absl::Seconds(3));

  REQUIRE(chief.Count<RecordRepair>() == 2);
  CHECK(chief.Last<RecordRepair>() == order);
}

TEST_CASE("coordinator: a worker may let go of a snapshot that shows a difference", "[core][rule22]") {
  ChiefHarness chief({.term = 2, .checkpoint_step = 10, .plan = "plan-1"});
  FakeWorker& w = chief.worker(0);
  w.has_state = true;
  w.lineage = "lineage-1";
  w.position = Position{10, 0};
  w.digest_suffix = "-flipped";
  w.snapshots.insert(SnapshotId{"lineage-1", 10, chief.DigestOf(w)});

  chief.Connect(0);  // it tells of its snapshot once it is welcome

  CHECK(chief.Count<RecordRepair>() + chief.Count<WentBack>() > 0);
  CHECK(w.snapshots.empty());  // else it is never free to save again
}

TEST_CASE("coordinator: a state that differs is not saved for who leaves, nor for a stop", "[core][rule22]") {
  ChiefHarness chief({.workers = 2});
  FlipAt(chief, 48, 1);
  chief.worker(0).leaving = true;
  chief.Say(0, LeaveIntent{absl::Seconds(20)});
  chief.Do(StopRequested{"SIGTERM", 75});
  chief.Advance(absl::Seconds(2));
  CHECK(chief.Commands<TakeSnapshot>(0).empty());
  CHECK(chief.worker(0).exit_code == -1);

  GoBackTo(chief, 32);
  chief.Advance(absl::Seconds(6));

  CHECK(chief.Commands<TakeSnapshot>(0).empty());
  CHECK(chief.Last<Exit>().code == 75);
  CHECK_THAT(chief.Last<Exit>().reason, Contains("step 32 is published"));
}

TEST_CASE("coordinator: last snapshots that differ do not end the job; all go back", "[core][rule22]") {
  ChiefHarness chief({.workers = 2, .end_step = 50});
  SaveAt(chief, 40);
  chief.worker(1).digest_suffix = "-flipped";
  chief.StepTo(50);
  REQUIRE(chief.Count<RecordRepair>() == 1);
  CHECK(chief.phase() != Phase::kDone);
  chief.worker(1).digest_suffix = "";

  GoBackTo(chief, 40);
  REQUIRE(chief.phase() == Phase::kRunning);
  chief.StepTo(50);

  CHECK(chief.Last<Exit>().code == 0);
  CHECK(chief.Last<PublishCommit>().snapshot == SnapshotId{"lineage-1~1", 50, "digest-of-50"});
}

TEST_CASE("coordinator: a difference that is found after the job's end is recorded and said", "[core][rule22]") {
  ChiefHarness chief({.workers = 2, .end_step = 50});
  chief.StepTo(49);
  for (int i : {0, 1}) chief.Apply(i, 50);
  chief.worker(1).mute = true;
  chief.TakeSnapshotAt(1, SnapshotCause::kEnd);
  chief.Do(ShareStored{{"lineage-1", 50, "digest-of-50"}, 1, 2});
  chief.TakeSnapshotAt(0, SnapshotCause::kEnd);
  REQUIRE(chief.phase() == Phase::kDone);
  SECTION("in its snapshot") {
    chief.worker(1).digest_suffix = "-flipped";
    chief.TakeSnapshotAt(1, SnapshotCause::kEnd);
  }
  SECTION("by an earlier chief, as a worker tells that could not reach this one before") {
    chief.worker(2).hello.differ = StatesDiffer{"lineage-1", 48};
    chief.Connect(2);
    CHECK(chief.Last<RecordRepair>().found_at == 48);
  }
  GoBackTo(chief, 0);

  CHECK(chief.Last<Exit>().code == 70);
  CHECK_THAT(chief.Last<Exit>().reason, Contains("resumes from step 0"));
}

TEST_CASE("coordinator: evaluations go on from the history of the audited state", "[core][rule22]") {
  JobPolicy policy;
  policy.training.eval_slices = 1;
  policy.training.eval_every_steps = 8;
  ChiefHarness chief({.workers = 2, .policy = policy});
  const auto evaluate = [&](uint64_t step, double correct) {
    chief.StepTo(step);
    chief.Say(0, EvalReport{chief.worker(0).lineage, step, {SliceResult{0, {.correct = correct}}}});
  };
  evaluate(32, 3);
  evaluate(40, 9);
  REQUIRE(chief.Count<EvaluationDone>() == 2);
  FlipAt(chief, 48, 1);
  const EvaluationLedger ledger{.rule = 1, .step = 32, .value = 3, .best_step = 32, .best_value = 3};
  GoBackTo(chief, 32, ledger);

  CHECK(chief.LastCommand<Form>(0).ledger == ledger);
  chief.Say(0, EvalReport{"lineage-1", 40, {SliceResult{0, {.correct = 9}}}});  // of what was given up
  CHECK(chief.Count<EvaluationDone>() == 2);
  evaluate(40, 5);

  REQUIRE(chief.Count<EvaluationDone>() == 3);
  CHECK(chief.Last<EvaluationDone>().slices.at(0).sums.correct == 5);
  CHECK(chief.Last<EvaluationDone>().lineage == "lineage-1~1");
}

TEST_CASE("coordinator: a state is audited when all of its generation have it, also when that is one worker",
          "[core][rule22]") {
  SECTION("one worker") {
    ChiefHarness chief({.workers = 1});
    SaveAt(chief, 20);
    CHECK(chief.Last<StoreManifest>().audited);
  }
  SECTION("one that did not tell") {
    ChiefHarness chief({.workers = 2});
    chief.StepTo(20);
    chief.TakeSnapshotAt(0, SnapshotCause::kDue);
    chief.Advance(CheckpointTracker::kShareWait + absl::Seconds(1));
    REQUIRE(chief.Count<StoreManifest>() == 1);
    CHECK_FALSE(chief.Last<StoreManifest>().audited);
  }
  SECTION("at rest, one of those that stepped together") {
    ChiefHarness chief({.workers = 2, .min = 2});
    chief.StepTo(20);
    chief.Kill(1);
    chief.Do(StopRequested{"user", 0});
    REQUIRE(chief.Last<StoreManifest>().snapshot.step == 20);
    CHECK_FALSE(chief.Last<StoreManifest>().audited);
  }
}

TEST_CASE("coordinator: under `fast` survivors of a generation are compared when it ends", "[core][rule22]") {
  JobPolicy policy;
  policy.lineage_per_generation = policy.training.digest_in_acks = true;
  ChiefHarness chief({.workers = 3, .policy = policy});
  chief.StepTo(9);
  for (int i : {1, 2}) chief.worker(i).mute = true;
  chief.Kill(0);
  for (int i : {1, 2}) {
    FakeWorker& w = chief.worker(i);
    const Generation old = std::exchange(w.generation, Generation());
    chief.Say(i, VerdictAck{old, true, w.lineage, w.position, i == 1 ? "bits" : "others"});
  }
  for (int i : {1, 2}) chief.worker(i).mute = false;
  chief.Advance(absl::Seconds(2));

  GoBackTo(chief, 0);

  CHECK(JobLineage(chief.LastCommand<Form>(1).lineage) == "lineage-1~1");
  CHECK(chief.LastCommand<Form>(1).restore->step == 0);
}

}  // namespace
}  // namespace lockstep::chief
