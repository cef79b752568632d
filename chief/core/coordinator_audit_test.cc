// Replicas that differ: who is named, and the way back (rule 22).
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"
#include "chief/core/repair_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("coordinator: the replica in the minority is named and sent away, the others return to the audited state",
          "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  SaveAt(chief, 32);
  REQUIRE(chief.Last<StoreManifest>().audited);

  FlipAt(chief, 48, 1);

  // Nobody hears anything but the generation's end before the decision is durable.
  REQUIRE(chief.Count<RecordRepair>() == 1);
  const RecordRepair order = chief.Last<RecordRepair>();
  CHECK(order.lineage == "lineage-1~1");
  CHECK(order.found_at == 48);
  CHECK(order.hosts == std::vector<std::string>{"host-1"});
  CHECK(chief.Commands<Form>(0).size() == 1);
  CHECK(chief.worker(1).exit_code == -1);
  CHECK_THAT(chief.View().waiting_for, Contains("differ at step 48"));
  chief.Advance(absl::Seconds(20));
  CHECK(chief.Commands<Form>(0).size() == 1);

  GoBackTo(chief, 32);

  CHECK(chief.worker(1).exit_code == 75);
  std::vector<std::string> named;
  for (const WorkerChanged& change : chief.All<WorkerChanged>()) {
    if (change.change == WorkerChange::kDigestMismatch) named.push_back(change.name);
  }
  CHECK(named == std::vector<std::string>{"worker-1"});
  CHECK_THAT(chief.Said(), Contains("worker-1 on host-1") && Contains("back to step 32"));
  const Form form = chief.LastCommand<Form>(0);
  CHECK(form.members.size() == 2);
  CHECK(form.lineage == "lineage-1~1");
  REQUIRE(form.restore.has_value());
  CHECK(form.restore->step == 32);
  CHECK(form.restore->lineage == "lineage-1");
  CHECK(chief.View().agreed_step == 32);
  CHECK(chief.View().waiting_for.empty());

  // The steps come again, are told again and saved under the new lineage; the worker joins once it was started again.
  chief.Forget();
  SaveAt(chief, 40);
  CHECK(chief.Last<StepsAgreed>().step == 40);
  CHECK(chief.Last<PublishCommit>().snapshot.lineage == "lineage-1~1");
  chief.NewProcess(1);
  chief.Connect(1);
  chief.MeetAtBoundary();
  CHECK(chief.LastCommand<Form>(1).receivers.size() == 1);
  chief.StepTo(1000);
  REQUIRE(chief.ended());
  CHECK(chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: of two replicas nobody is named, and both return", "[core][rule22]") {
  ChiefHarness chief({.workers = 2});
  SaveAt(chief, 32);

  FlipAt(chief, 48, 1);
  GoBackTo(chief, 32);

  for (int i : {0, 1}) {
    CHECK(chief.Commands<Shutdown>(i).empty());
    CHECK(chief.LastCommand<Form>(i).restore->step == 32);
    CHECK(chief.LastCommand<Form>(i).members.size() == 2);
  }
  CHECK(chief.All<WorkerChanged>().back().change == WorkerChange::kJoined);
  CHECK_THAT(chief.Said(), Contains("nobody can be named"));
}

TEST_CASE("coordinator: a member that does not tell its digest is waited for a moment", "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(16);
  chief.worker(1).digest_suffix = "-flipped";
  for (int i : {0, 1}) chief.Audit(i);

  CHECK(chief.Count<RecordRepair>() == 0);
  CHECK(chief.phase() == Phase::kRunning);
  SECTION("it tells") {
    chief.Audit(2);
    CHECK(chief.Last<RecordRepair>().hosts == std::vector<std::string>{"host-1"});
  }
  SECTION("it is lost") {
    chief.Kill(2);
    CHECK(chief.Last<RecordRepair>().lineage == "lineage-1~1");
    CHECK(chief.Last<RecordRepair>().hosts.empty());
  }
  SECTION("it says nothing") {
    chief.Advance(absl::Seconds(2));
    CHECK(chief.Last<RecordRepair>().lineage == "lineage-1~1");
    CHECK(chief.Last<RecordRepair>().hosts.empty());
  }
}

TEST_CASE("coordinator: what members tell while they come to rest still counts", "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(16);
  chief.worker(2).mute = true;
  chief.worker(1).digest_suffix = "-flipped";
  for (int i : {0, 1}) chief.Audit(i);
  chief.Kill(0);  // the generation ends before worker 2 has told
  REQUIRE(chief.Count<RecordRepair>() == 0);

  const FakeWorker& last = chief.worker(2);
  chief.Audit(2);
  chief.Say(2, VerdictAck{last.generation, true, last.lineage, last.position, ""});

  CHECK(chief.Last<RecordRepair>().hosts == std::vector<std::string>{"host-1"});
}

TEST_CASE("coordinator: snapshots that differ are never published", "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(20);
  chief.worker(0).digest_suffix = "-flipped";
  chief.worker(2).keeps_shares = true;

  for (int i : {0, 1}) chief.TakeSnapshotAt(i, SnapshotCause::kBest);
  CHECK(chief.Count<AbandonSave>() == 1);
  CHECK_FALSE(chief.LastCommand<SnapshotEnded>(0).published);
  SECTION("the third says who is wrong") {
    chief.TakeSnapshotAt(2, SnapshotCause::kBest);
    CHECK(chief.Last<RecordRepair>().hosts == std::vector<std::string>{"host-0"});
  }
  SECTION("the third says nothing") { chief.Advance(absl::Seconds(2)); }
  GoBackTo(chief, 0);

  CHECK(chief.Count<PublishCommit>() == 0);
  CHECK(chief.LastCommand<Form>(1).restore->step == 0);
}

TEST_CASE("coordinator: a save that is being stored is abandoned, a commit under way is waited for", "[core][rule22]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(20);
  chief.storing = false;
  chief.TakeSnapshots(SnapshotCause::kDue);
  const SnapshotId snapshot = chief.Last<StoreManifest>().snapshot;
  REQUIRE(snapshot.step == 20);
  SECTION("stored") {
    FlipAt(chief, 32, 1);
    CHECK(chief.Last<AbandonSave>().snapshot == snapshot);
    chief.Do(ManifestStored{snapshot, snapshot.digest});
    CHECK(chief.Count<PublishCommit>() == 0);
  }
  SECTION("committed") {
    chief.Do(ManifestStored{snapshot, snapshot.digest});
    REQUIRE(chief.Count<PublishCommit>() == 1);
    FlipAt(chief, 32, 1);
    CHECK(chief.Count<RecordRepair>() == 0);
    SECTION("it succeeds") { chief.Do(Published{snapshot}); }
    SECTION("it fails") { chief.Do(StorageFailed{snapshot, "the disk is full", true}); }
  }
  REQUIRE(chief.Count<RecordRepair>() == 1);
  GoBackTo(chief, 0);

  CHECK(chief.View().published_step == 0);
  CHECK(chief.LastCommand<Form>(0).restore->step == 0);
  chief.storing = true;
  SaveAt(chief, 20);
}

TEST_CASE("coordinator: a worker that was cut off with the old lineage is never a source again", "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(30);
  chief.Reset(2);
  FlipAt(chief, 48, 1);
  const bool back_early = GENERATE(false, true);
  const auto come_back = [&] {
    chief.worker(2).position = Position{500, 0};
    chief.Connect(2);
  };
  if (back_early) come_back();
  GoBackTo(chief, 32);
  if (!back_early) come_back();
  chief.Advance(absl::Seconds(5));
  chief.MeetAtBoundary();
  chief.Advance(absl::Seconds(5));

  const Form form = chief.LastCommand<Form>(2);
  CHECK(form.lineage == "lineage-1~1");
  CHECK(form.position == Position{32, 0});
  CHECK(chief.worker(0).position == Position{32, 0});
  // A snapshot of what was given up is not saved either.
  chief.Say(2, SnapshotTaken{form.members.empty() ? Generation() : chief.worker(2).generation,
                             {"lineage-1", 500, "digest-of-500"},
                             SnapshotCause::kDue,
                             {}});
  CHECK_FALSE(chief.LastCommand<SnapshotEnded>(2).published);
  CHECK(chief.Count<OpenSave>() == 0);
}

TEST_CASE("coordinator: while a chief that listens awaits digests, its deadline wakes it once", "[core][rule22]") {
  ChiefHarness chief({.workers = 4});
  chief.StepTo(10);
  chief.Pause(absl::Seconds(30));
  chief.Reset(2);
  REQUIRE(chief.phase() == Phase::kAdopting);
  chief.Advance(chief.config().policy.heartbeat_limit - absl::Milliseconds(500));
  chief.StepTo(12);
  chief.worker(1).digest_suffix = "-flipped";
  for (int i : {0, 1}) chief.Audit(i);

  chief.Advance(absl::Milliseconds(500));

  REQUIRE(chief.phase() == Phase::kAdopting);
  CHECK(chief.NextDeadline() > chief.now());
  chief.Audit(3);
  CHECK(chief.phase() == Phase::kWaiting);
  CHECK(chief.Last<RecordRepair>().hosts == std::vector<std::string>{"host-1"});
}

TEST_CASE("coordinator: a chief that starts after a repair does not adopt what the repair gave up", "[core][rule22]") {
  const bool fast = GENERATE(false, true);
  JobPolicy policy;
  policy.lineage_per_generation = policy.training.digest_in_acks = fast;
  const Lineage old = fast ? "lineage-0+1.3" : "lineage-0";
  ChiefHarness chief({.workers = 0,
                      .expected = 2,
                      .term = 2,
                      .checkpoint_step = 32,
                      .plan = "plan-1",
                      .policy = policy,
                      .checkpoint_lineage = old});
  std::vector<Member> members;
  for (int i : {0, 1}) members.push_back(Member{chief.worker(i).id, absl::StrCat("worker-", i), "10.0.0.9:1"});
  for (int i : {0, 1}) {
    FakeWorker& w = chief.worker(i);
    w.has_state = true;
    w.lineage = fast ? "lineage-0+1.7" : old;
    w.position = Position{70, 0};
    w.generation = Generation{1, 7};
    w.members = members;
    chief.Connect(i);
  }
  chief.Advance(absl::Seconds(40));

  const Form form = chief.LastCommand<Form>(0);
  REQUIRE(form.restore.has_value());
  CHECK(form.restore->step == 32);
  CHECK(JobLineage(form.lineage) == "lineage-1");
}

TEST_CASE("coordinator: everybody hears at once that replicas differ", "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(48);
  chief.worker(1).digest_suffix = "-flipped";
  for (int i : {0, 1}) chief.Audit(i);

  REQUIRE(chief.Count<RecordRepair>() == 0);  // the third has not told
  for (int i : {0, 1, 2}) CHECK(chief.LastCommand<StatesDiffer>(i) == StatesDiffer{"lineage-1", 48});
}

TEST_CASE("coordinator: a difference that an earlier chief found sends all back, also without the one that differs",
          "[core][rule22]") {
  ChiefHarness chief({.workers = 0, .expected = 2, .term = 2, .checkpoint_step = 32, .plan = "plan-1"});
  const Lineage told = GENERATE("lineage-1", "lineage-0");
  for (int i : {0, 1}) {
    FakeWorker& w = chief.worker(i);
    w.has_state = true;
    w.lineage = "lineage-1";
    w.position = Position{70, 0};
    if (i == 1) w.hello.differ = StatesDiffer{told, 48};
    chief.Connect(i);
  }
  chief.Advance(absl::Seconds(40));

  if (told == "lineage-0") {  // the job went back since
    CHECK(chief.Count<RecordRepair>() == 0);
    CHECK(chief.LastCommand<Form>(0).position == Position{70, 0});
    return;
  }
  REQUIRE(chief.Count<RecordRepair>() == 1);
  CHECK(chief.Last<RecordRepair>().found_at == 48);
  CHECK(chief.Last<RecordRepair>().hosts.empty());
  CHECK_THAT(chief.Last<RecordRepair>().reason, Contains("an earlier chief told worker-1"));
  GoBackTo(chief, 32);
  CHECK(chief.LastCommand<Form>(0).restore->step == 32);
}

TEST_CASE("coordinator: while a worker is out of reach the state stays that all had compared before",
          "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(16);
  for (int i : {0, 1, 2}) chief.Audit(i);
  SaveAt(chief, 20);
  CHECK(chief.Last<StoreManifest>().audit_floor == AuditFloor::kNone);
  const bool leaves = GENERATE(false, true);
  if (leaves) chief.Say(2, Left{75, "its machine is wanted elsewhere"});
  if (!leaves) chief.Reset(2);
  chief.Advance(absl::Seconds(10));
  REQUIRE(chief.Members().size() == 2);

  chief.StepTo(32);
  for (int i : {0, 1}) chief.Audit(i);
  SaveAt(chief, 40);
  CHECK(chief.Last<StoreManifest>().audited);
  CHECK(chief.Last<StoreManifest>().audit_floor == (leaves ? AuditFloor::kNone : 20));  // the save compared them

  chief.Connect(2);
  chief.Advance(absl::Seconds(1));
  chief.MeetAtBoundary();
  chief.Advance(absl::Seconds(5));
  REQUIRE(chief.Members().size() == 3);
  chief.StepTo(48);
  for (int i : {0, 1, 2}) chief.Audit(i);
  SaveAt(chief, 60);
  CHECK(chief.Last<StoreManifest>().audit_floor == AuditFloor::kNone);
}

TEST_CASE("coordinator: a chief does not know whom the one before it had lost: the oldest audited state stays",
          "[core][rule22]") {
  ChiefHarness chief({.workers = 2, .term = 2, .checkpoint_step = 10, .plan = "plan-1"});
  chief.Advance(absl::Seconds(40));  // it listens for generations of before
  SaveAt(chief, 20);
  CHECK(chief.Last<StoreManifest>().audit_floor == 0);  // of the oldest that it found

  // A worker that reaches no chief for so long has ended.
  chief.Advance(chief.config().policy.training.chief_timeout + absl::Minutes(2));
  chief.StepTo(32);
  for (int i : {0, 1}) chief.Audit(i);
  SaveAt(chief, 40);
  CHECK(chief.Last<StoreManifest>().audit_floor == AuditFloor::kNone);
}

}  // namespace
}  // namespace lockstep::chief
