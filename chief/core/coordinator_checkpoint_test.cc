// Saves, stopping, the end, agreed steps and evaluation (rules 6, 7, 18 to 20).
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("coordinator: every member is asked for its own share, and the commit comes after the manifest", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(20);
  chief.storing = false;

  chief.TakeSnapshots(SnapshotCause::kDue);
  for (int i : {0, 1, 2}) {
    CHECK(chief.LastCommand<AskShare>(i).share == static_cast<uint32_t>(i));
    CHECK(chief.LastCommand<AskShare>(i).shares == 3);
  }
  CHECK(chief.Last<StoreManifest>().audited);
  CHECK(chief.Last<StoreManifest>().plan_hash == "plan-1");
  CHECK(chief.Count<PublishCommit>() == 0);
  chief.Do(ManifestStored{chief.Last<StoreManifest>().snapshot, "digest-of-20"});
  CHECK(chief.Count<PublishCommit>() == 1);
  CHECK(chief.worker(0).snapshots.size() == 1);
  chief.Do(Published{chief.Last<PublishCommit>().snapshot});

  CHECK(chief.worker(0).snapshots.empty());
  CHECK(chief.View().published_step == 20);
}

TEST_CASE("coordinator: shards whose digest is not the announced one are not published", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(20);
  chief.recomputed_suffix = "-damaged";

  chief.TakeSnapshots(SnapshotCause::kDue);

  CHECK(chief.Count<PublishCommit>() == 0);
  CHECK(chief.Count<AbandonSave>() == 1);
  CHECK_FALSE(chief.LastCommand<SnapshotEnded>(0).published);
}

TEST_CASE("coordinator: a share whose holder died is asked of another member that has the snapshot", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(20);
  chief.worker(1).keeps_shares = true;
  chief.TakeSnapshots(SnapshotCause::kDue);
  CHECK(chief.Count<StoreManifest>() == 0);

  chief.Kill(1);

  CHECK(chief.Last<PublishCommit>().snapshot.step == 20);
  const bool asked_again = chief.LastCommand<AskShare>(0).share == 1 || chief.LastCommand<AskShare>(2).share == 1;
  CHECK(asked_again);
}

TEST_CASE("coordinator: a broken share is asked again, of another one first", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(20);
  chief.worker(1).keeps_shares = true;
  chief.TakeSnapshots(SnapshotCause::kDue);
  const SnapshotId snapshot = chief.Last<OpenSave>().snapshot;

  chief.Do(ShareBroken{snapshot, 1, 2, "checksum of a chunk", chief.worker(1).id});

  CHECK(chief.LastCommand<AskShare>(0).share == 1);
  CHECK(chief.Count<PublishCommit>() == 1);
}

TEST_CASE("coordinator: a save that nobody can complete is abandoned; after two the next holds the boundary",
          "[core]") {
  ChiefHarness chief({.workers = 2});
  // Neither worker can send anything.
  chief.worker(0).keeps_shares = chief.worker(1).keeps_shares = true;
  for (uint64_t step : {30, 40}) {
    chief.StepTo(step);
    CHECK(chief.worker(0).requests.count(RequestKind::kSnapshotHold) == 0);
    chief.TakeSnapshots(SnapshotCause::kDue);
    const SnapshotId snapshot = chief.Last<OpenSave>().snapshot;
    REQUIRE(snapshot.step == step);
    for (uint32_t share : {0, 1}) {
      for (int i : {0, 1}) chief.Say(i, ShareFailed{snapshot, share, 2, "broken pipe"});
    }
    CHECK(chief.Last<AbandonSave>().snapshot.step == step);
  }
  CHECK(chief.worker(0).requests.count(RequestKind::kSnapshotHold) == 1);

  // A save that holds is not given up while somebody has it.
  chief.StepTo(41);
  chief.TakeSnapshots(SnapshotCause::kHold);
  const SnapshotId held = chief.Last<OpenSave>().snapshot;
  for (uint32_t share : {0, 1}) {
    for (int i : {0, 1}) chief.Say(i, ShareFailed{held, share, 2, "broken pipe"});
  }
  chief.worker(0).keeps_shares = chief.worker(1).keeps_shares = false;
  chief.Advance(absl::Seconds(2));
  CHECK(chief.Last<PublishCommit>().snapshot.step == 41);
}

TEST_CASE("coordinator: saves that are not what was announced, three in a row, end the job with 74", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.storage_error = "step 10 was published with other bits";
  chief.storage_may_pass = false;
  for (uint64_t step : {10, 20, 30}) {
    CHECK_FALSE(chief.ended());
    chief.StepTo(step);
    chief.TakeSnapshots(SnapshotCause::kDue);
  }

  CHECK(chief.Last<Exit>().code == 74);
  CHECK_THAT(chief.Last<Exit>().reason, Contains("other bits") && Contains("step 0"));
  CHECK(chief.worker(0).exit_code == 74);
}

TEST_CASE("coordinator: a restore waits for a save that needs no worker any more", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(20);
  chief.storing = false;
  chief.TakeSnapshots(SnapshotCause::kDue);
  REQUIRE(chief.Count<StoreManifest>() == 1);
  for (int i : {0, 1}) chief.Kill(i);
  for (int i : {0, 1}) chief.Connect(i);
  CHECK(chief.phase() == Phase::kWaiting);

  chief.Do(ManifestStored{chief.Last<StoreManifest>().snapshot, "digest-of-20"});
  chief.Do(Published{chief.Last<StoreManifest>().snapshot});

  CHECK(chief.LastCommand<Form>(0).restore->step == 20);
}

TEST_CASE("coordinator: saves fall due by time, one at a time, and only when something new is there", "[core]") {
  JobPolicy policy;
  policy.save_every = absl::Seconds(60);
  ChiefHarness chief({.workers = 2, .policy = policy});
  chief.Advance(absl::Seconds(70));
  CHECK(chief.worker(0).requests.count(RequestKind::kSnapshot) == 0);  // still at step 0

  chief.StepTo(5);
  REQUIRE(chief.worker(0).requests.count(RequestKind::kSnapshot) == 1);
  const uint64_t number = chief.worker(0).requests[RequestKind::kSnapshot];
  chief.TakeSnapshots(SnapshotCause::kDue);
  CHECK(chief.View().published_step == 5);
  chief.StepTo(6);
  CHECK(chief.worker(0).requests[RequestKind::kSnapshot] == number);
  chief.Advance(absl::Seconds(61));

  CHECK(chief.worker(0).requests[RequestKind::kSnapshot] > number);
}

TEST_CASE("coordinator: the last save is never skipped, and the job is done only when it is published", "[core]") {
  ChiefHarness chief({.workers = 2, .end_step = 50});
  chief.storage_error = "No space left on device";
  chief.StepTo(50);
  CHECK(chief.phase() == Phase::kFinishing);
  CHECK(chief.Commands<Done>(0).empty());

  chief.storage_error = "";
  chief.Advance(absl::Seconds(2));

  CHECK(chief.LastCommand<Done>(0).step == 50);
  CHECK(chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: a member lost in the last step does not keep the others from finishing", "[core]") {
  ChiefHarness chief({.workers = 3, .end_step = 50});
  chief.StepTo(49);
  // Worker 2 dies in step 50; worker 0 applied it, worker 1 did not.
  chief.Apply(0, 50);
  chief.TakeSnapshotAt(0, SnapshotCause::kEnd);
  chief.Say(1, PeerFailed{chief.worker(1).generation, chief.worker(2).id, false, "closed"});

  chief.Kill(2);

  CHECK(chief.Last<PublishCommit>().snapshot.step == 50);
  CHECK(chief.worker(1).exit_code == 0);
}

TEST_CASE("coordinator: when all holders of the last snapshot die, the last steps are computed again", "[core]") {
  ChiefHarness chief({.workers = 2, .end_step = 50});
  chief.StepTo(49);
  chief.worker(0).keeps_shares = true;
  chief.Apply(0, 50);
  chief.TakeSnapshotAt(0, SnapshotCause::kEnd);
  REQUIRE(chief.phase() == Phase::kFinishing);

  chief.Kill(0);

  CHECK(chief.LastCommand<Form>(1).position == Position{49, 0});
  CHECK(chief.phase() == Phase::kRunning);
}

TEST_CASE("coordinator: the chief of a finished job answers done until its members heard it", "[core]") {
  ChiefHarness chief({.workers = 2, .end_step = 50});
  chief.StepTo(49);
  chief.Apply(0, 50);
  chief.Apply(1, 50);
  const Incarnation sleeper = chief.worker(1).id;
  chief.TakeSnapshotAt(1, SnapshotCause::kEnd);
  chief.worker(1).mute = true;
  chief.TakeSnapshotAt(0, SnapshotCause::kEnd);
  chief.Reset(1);
  REQUIRE(chief.phase() == Phase::kDone);
  chief.Advance(absl::Seconds(60));
  CHECK_FALSE(chief.ended());

  SECTION("it comes back and hears it") {
    chief.worker(1).mute = false;
    REQUIRE(chief.worker(1).id == sleeper);
    chief.Connect(1);
    CHECK(chief.worker(1).exit_code == 0);
  }
  SECTION("its supervisor saw it end") { chief.Do(ProcessExited{"worker-1", 9, 0}), chief.Advance(absl::Seconds(1)); }
  SECTION("chief_timeout passes") { chief.Advance(absl::Minutes(10)); }

  REQUIRE(chief.ended());
  CHECK(chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: a chief that finds the job done says so and ends", "[core]") {
  ChiefHarness chief({.end_step = 50, .term = 2, .checkpoint_step = 50, .plan = "plan-1"});
  chief.Connect(0);
  CHECK(chief.worker(0).exit_code == 0);

  chief.Advance(absl::Seconds(6));

  CHECK(chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: a stop saves first and ends with its own code", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(33);
  chief.Do(StopRequested{"SIGTERM", 75});
  REQUIRE(chief.worker(1).requests.count(RequestKind::kStop) == 1);
  CHECK(chief.worker(0).exit_code == -1);

  chief.StepTo(34);
  chief.TakeSnapshots(SnapshotCause::kStop);

  CHECK(chief.Last<PublishCommit>().snapshot.step == 34);
  CHECK(chief.worker(0).exit_code == 75);
  CHECK(chief.Last<Exit>().code == 75);
}

TEST_CASE("coordinator: a stop while nothing steps saves what is held", "[core]") {
  ChiefHarness chief({.workers = 2, .min = 2});
  chief.StepTo(12);
  chief.Kill(1);

  chief.Do(StopRequested{"user", 0});

  CHECK(chief.Last<PublishCommit>().snapshot.step == 12);
  CHECK(chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: one error of the disk counts once, however many senders hear of it", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(999);
  for (int i : {0, 1, 2}) chief.worker(i).keeps_shares = true;
  chief.StepTo(1000);
  const SnapshotId last = chief.Last<OpenSave>().snapshot;
  REQUIRE(last.step == 1000);

  for (int i = 0; i < 3; ++i) chief.Do(StorageFailed{last, "no space left", true});

  CHECK_FALSE(chief.ended());
  for (int i : {0, 1, 2}) chief.worker(i).keeps_shares = false;
  chief.Advance(absl::Seconds(2));
  CHECK(chief.Last<PublishCommit>().snapshot == last);
}

TEST_CASE("coordinator: an older save never follows a newer one", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.storing = false;
  chief.StepTo(20);
  chief.TakeSnapshots(SnapshotCause::kDue);
  REQUIRE(chief.Last<StoreManifest>().snapshot.step == 20);
  const SnapshotId newer = chief.Last<StoreManifest>().snapshot;
  // A worker that was away tells of a snapshot of an earlier step; it is collected while the newer one is stored.
  const SnapshotId older{newer.lineage, 10, "digest-of-10"};
  chief.worker(0).keeps_shares = true;
  chief.Say(0, SnapshotTaken{chief.worker(0).generation, older, SnapshotCause::kDue});
  chief.Do(ManifestStored{newer, newer.digest});
  chief.Do(Published{newer});
  REQUIRE(chief.View().published_step == 20);

  chief.storing = true;
  chief.Do(ShareStored{older, 0, 2});
  chief.Do(ShareStored{older, 1, 2});
  chief.Advance(absl::Seconds(1));

  CHECK(chief.View().published_step == 20);
  CHECK(chief.Last<PublishCommit>().snapshot == newer);
}

TEST_CASE("coordinator: a job is not done before its last step was evaluated", "[core]") {
  JobPolicy policy;
  policy.training.eval_slices = 4;
  ChiefHarness chief({.workers = 1, .end_step = 50, .policy = policy});
  chief.StepTo(49);

  SECTION("what is saved of it while it leaves halfway is restored to be evaluated") {
    FakeWorker& leaver = chief.worker(0);
    leaver.leaving = true;
    leaver.position = Position{50, 2};
    chief.Say(0, LeaveIntent{absl::Seconds(20)});
    chief.ComeToBoundary(0);
    CHECK(chief.Last<PublishCommit>().snapshot.step == 50);
    CHECK_FALSE(chief.Last<StoreManifest>().evaluated);
    CHECK(chief.phase() != Phase::kDone);
    chief.Kill(0);
    chief.Connect(0);
    chief.Advance(absl::Seconds(10));
    REQUIRE(!chief.Commands<Form>(0).empty());
    CHECK(chief.LastCommand<Form>(0).restore.has_value());
    CHECK(chief.LastCommand<Form>(0).position == Position{50, 0});
  }
  SECTION("evaluated, it is done") {
    chief.StepTo(50);
    CHECK(chief.Last<StoreManifest>().evaluated);
    CHECK(chief.Last<Exit>().code == 0);
    CHECK(chief.ended());
  }
}

TEST_CASE("coordinator: training hours end in a stop", "[core]") {
  JobPolicy policy;
  policy.max_duration = absl::Hours(1);
  ChiefHarness chief({.workers = 1, .policy = policy});

  chief.Advance(absl::Minutes(61));

  CHECK(chief.worker(0).requests.count(RequestKind::kFinish) == 1);
}

// ---- agreed steps and evaluation (rule 7)

TEST_CASE("coordinator: a step is agreed when every member applied it, and told once", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.Apply(0, 7);
  CHECK(chief.View().agreed_step == 0);
  chief.Apply(1, 6);
  CHECK(chief.Last<StepsAgreed>().step == 6);
  CHECK(chief.Last<StepsAgreed>().records.empty());
  chief.Apply(1, 7);

  REQUIRE(chief.Last<StepsAgreed>().step == 7);
  CHECK(chief.Last<StepsAgreed>().records.size() == 1);
}

TEST_CASE("coordinator: an evaluation is told when all its slices are in, whoever computed them", "[core]") {
  JobPolicy policy;
  policy.training.eval_slices = 3;
  policy.training.eval_every_steps = 8;
  ChiefHarness chief({.workers = 2, .policy = policy});
  chief.StepTo(8);
  const auto slice = [](uint64_t index) { return SliceResult{index, {.correct = 10.0 + static_cast<double>(index)}}; };

  chief.Say(0, EvalReport{"lineage-1", 8, {slice(0), slice(1)}});
  CHECK(chief.Count<EvaluationDone>() == 0);
  chief.Say(1, EvalReport{"lineage-1", 8, {slice(1), slice(2)}});

  REQUIRE(chief.Count<EvaluationDone>() == 1);
  CHECK(chief.Last<EvaluationDone>().slices.size() == 3);
  chief.Say(1, EvalReport{"lineage-1", 8, {slice(0), slice(1), slice(2)}});
  CHECK(chief.Count<EvaluationDone>() == 1);
}

TEST_CASE("coordinator: positions inside an evaluation are ordered behind the step's own", "[core]") {
  JobPolicy policy;
  policy.training.eval_slices = 3;
  policy.training.eval_every_steps = 8;
  ChiefHarness chief({.workers = 3, .policy = policy});
  chief.StepTo(8);
  chief.worker(1).position = Position{8, 2};
  chief.worker(2).position = Position{8, 1};

  chief.Kill(0);

  CHECK(chief.LastCommand<Form>(2).position == Position{8, 2});
  CHECK(chief.LastCommand<Form>(2).receivers.size() == 1);
}

}  // namespace
}  // namespace lockstep::chief
