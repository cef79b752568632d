// Lineages of generations, as under `reduction: fast`: the same step may have other bits in another life.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

JobPolicy Fast() {
  JobPolicy policy;
  policy.training.digest_in_acks = true;
  policy.lineage_per_generation = true;
  return policy;
}

TEST_CASE("coordinator: under `fast` each generation is a lineage, and goes on from the survivors' state", "[core]") {
  ChiefHarness chief({.workers = 3, .policy = Fast()});
  const Lineage first = chief.worker(0).lineage;
  CHECK(JobLineage(first) == "lineage-1");
  chief.StepTo(9);

  chief.Kill(0);

  const Form form = chief.LastCommand<Form>(1);
  CHECK(JobLineage(form.lineage) == "lineage-1");
  CHECK(BegunBy(form.lineage) > BegunBy(first));
  CHECK(form.position == Position{9, 0});
  CHECK(form.receivers.empty());
  CHECK_FALSE(form.restore.has_value());
  chief.StepTo(10);
  CHECK(chief.View().agreed_step == 10);
}

TEST_CASE("coordinator: under `fast` a generation that broke while it was forming loses no state", "[core]") {
  ChiefHarness chief({.workers = 3, .policy = Fast()});
  chief.StepTo(9);
  for (int i : {1, 2}) chief.worker(i).mute = true;
  chief.Kill(0);
  for (int i : {1, 2}) {
    FakeWorker& w = chief.worker(i);
    const Generation old = std::exchange(w.generation, Generation());
    chief.Say(i, VerdictAck{old, true, w.lineage, w.position, "bits"});
  }
  const Form broken = chief.LastCommand<Form>(1);
  const Lineage before = chief.worker(1).lineage;
  REQUIRE(broken.lineage != before);

  // Neither had come as far as to take its new name.
  chief.worker(1).mute = chief.worker(2).mute = false;
  const Generation forming = chief.View().generation;
  chief.Say(1, PeerFailed{forming, chief.worker(2).id, true, "refused"});
  for (int i : {1, 2}) chief.Say(i, VerdictAck{forming, true, before, Position{9, 0}, "bits"});
  chief.Advance(absl::Seconds(60));

  const Form form = chief.LastCommand<Form>(1);
  CHECK(BegunBy(form.lineage) > BegunBy(broken.lineage));
  CHECK(form.position == Position{9, 0});
  CHECK_FALSE(form.restore.has_value());
}

TEST_CASE("coordinator: under `fast` a worker that wakes with a higher step of another lineage receives the state",
          "[core]") {
  ChiefHarness chief({.workers = 3, .policy = Fast()});
  chief.StepTo(9);
  FakeWorker& sleeper = chief.worker(2);
  const Lineage old_life = sleeper.lineage;
  chief.Reset(2);
  chief.StepTo(10);
  sleeper.generation = Generation();
  sleeper.lineage = old_life;
  sleeper.position = Position{500, 0};

  chief.Connect(2);
  chief.MeetAtBoundary();

  const Form form = chief.LastCommand<Form>(2);
  CHECK(form.position == Position{10, 0});
  CHECK(form.receivers == std::vector<uint32_t>{2});
}

TEST_CASE("coordinator: under `fast` a save goes on when a newcomer joins, and is dropped with its life", "[core]") {
  ChiefHarness chief({.workers = 2, .policy = Fast()});
  for (int i : {0, 1}) chief.worker(i).keeps_shares = true;
  chief.StepTo(20);
  chief.TakeSnapshots(SnapshotCause::kDue);
  REQUIRE(chief.Count<OpenSave>() == 1);
  chief.Connect(2);
  chief.StepTo(21);
  chief.MeetAtBoundary();
  REQUIRE(chief.LastCommand<Form>(2).position == Position{21, 0});

  CHECK(chief.Count<AbandonSave>() == 0);
  CHECK(chief.Commands<SnapshotEnded>(0).empty());

  // Another life, which does not go on from that snapshot, says its own.
  chief.Say(2, SnapshotTaken{chief.worker(2).generation, {"lineage-1+0.1", 30, "other"}, SnapshotCause::kDue, {}});
  CHECK_FALSE(chief.LastCommand<SnapshotEnded>(2).published);
}

// Worker 0 alone has applied step 100 and its snapshot is stored, worker 1 holds step 99. Returns that snapshot.
SnapshotId StoreStepOfOne(ChiefHarness& chief) {
  chief.StepTo(99);
  chief.Apply(0, 100);
  chief.storing = false;
  chief.TakeSnapshotAt(0, SnapshotCause::kDue);
  chief.Advance(CheckpointTracker::kShareWait + absl::Seconds(1));
  REQUIRE(chief.Count<StoreManifest>() == 1);
  return chief.Last<StoreManifest>().snapshot;
}

TEST_CASE("coordinator: under `fast` a save that is being stored is not published when its life is over", "[core]") {
  ChiefHarness chief({.workers = 2, .policy = Fast()});
  const SnapshotId lost = StoreStepOfOne(chief);
  chief.Kill(0);
  REQUIRE(chief.LastCommand<Form>(1).position == Position{99, 0});

  chief.Do(ManifestStored{lost, lost.digest});

  CHECK(chief.Count<PublishCommit>() == 0);
  CHECK(chief.Last<AbandonSave>().snapshot == lost);
  CHECK(chief.View().published_step == 0);
  chief.storing = true;
  chief.StepTo(100);
  chief.TakeSnapshots(SnapshotCause::kDue);
  CHECK(chief.View().published_step == 100);
  CHECK(chief.Last<PublishCommit>().snapshot.lineage == chief.View().lineage);
}

TEST_CASE("coordinator: under `fast` nothing goes on from before a step whose commit is under way", "[core]") {
  ChiefHarness chief({.workers = 2, .policy = Fast()});
  const SnapshotId stored = StoreStepOfOne(chief);
  chief.Do(ManifestStored{stored, stored.digest});
  REQUIRE(chief.Count<PublishCommit>() == 1);
  chief.Forget();

  chief.Kill(0);
  CHECK(chief.Commands<Form>(1).empty());
  chief.Do(Published{stored});
  chief.Advance(absl::Seconds(40));

  const Form form = chief.LastCommand<Form>(1);
  REQUIRE(form.restore.has_value());
  CHECK(*form.restore == stored);
}

TEST_CASE("coordinator: under `fast` steps that nobody alive holds are taken back and told again", "[core]") {
  JobPolicy policy = Fast();
  policy.training.eval_slices = 2;
  policy.training.eval_every_steps = 30;
  ChiefHarness chief({.workers = 2, .max = 2, .policy = policy});
  const auto evaluate = [&](int index, uint64_t step, std::vector<SliceResult> slices) {
    chief.Say(index, EvalReport{chief.worker(index).lineage, step, std::move(slices)});
  };
  const SliceResult first{0, {.correct = 3}};
  const SliceResult second{1, {.correct = 4}};
  // A spare worker still holds an early step.
  FakeWorker& spare = chief.worker(2);
  spare.has_state = true;
  spare.lineage = chief.worker(0).lineage;
  spare.position = Position{50, 0};
  chief.Connect(2);
  for (const uint64_t step : {30, 60, 120}) {
    chief.StepTo(step);
    evaluate(0, step, step == 120 ? std::vector<SliceResult>{first} : std::vector<SliceResult>{first, second});
  }
  REQUIRE(chief.Count<EvaluationDone>() == 2);

  chief.worker(1).mute = true;
  chief.Reset(0);
  chief.Reset(1);

  REQUIRE(chief.LastCommand<Form>(2).position == Position{50, 0});
  CHECK(chief.View().agreed_step == 50);
  chief.Forget();
  chief.StepTo(51);
  REQUIRE(chief.Count<StepsAgreed>() == 1);
  CHECK(chief.Last<StepsAgreed>().step == 51);
  REQUIRE(chief.Last<StepsAgreed>().records.size() == 1);
  CHECK(chief.Last<StepsAgreed>().records[0].step == 51);
  // The evaluation before that step counts; those after it have other results in this life.
  evaluate(2, 30, {first, second});
  CHECK(chief.Count<EvaluationDone>() == 0);
  chief.StepTo(120);
  for (const uint64_t step : {60, 120}) evaluate(2, step, {second, {0, {.correct = 5}}});
  REQUIRE(chief.Count<EvaluationDone>() == 2);
  CHECK(chief.Last<EvaluationDone>().step == 120);
  CHECK(chief.Last<EvaluationDone>().slices[0].sums.correct == 5);
  CHECK(chief.Said().find("came twice") == std::string::npos);
}

TEST_CASE("coordinator: under `fast` a restarted chief learns the newest lineage and goes on from its state",
          "[core]") {
  ChiefHarness chief({.min = 1, .term = 2, .plan = "plan-1", .policy = Fast()});
  for (int i : {0, 1}) {
    FakeWorker& w = chief.worker(i);
    w.has_state = true;
    w.lineage = LineageOf("lineage-1", Generation{1, i == 0 ? 4u : 3u});
    w.position = Position{i == 0 ? 30u : 90u, 0};
    w.term = 1;
  }

  chief.Connect(0);
  chief.Connect(1);
  chief.Advance(absl::Seconds(40));

  const Form form = chief.LastCommand<Form>(0);
  CHECK(form.position == Position{30, 0});
  CHECK_FALSE(form.restore.has_value());
  CHECK(BegunBy(form.lineage) == chief.View().generation);
}

TEST_CASE("coordinator: under `fast` an adopted generation keeps its name when a worker of a later one comes",
          "[core]") {
  ChiefHarness chief({.term = 2, .plan = "plan-1", .policy = Fast()});
  const Lineage running = "lineage-1+1.4";
  std::vector<Member> members;
  for (int i : {0, 1}) {
    FakeWorker& w = chief.worker(i);
    members.push_back(Member{w.id, absl::StrCat("worker-", i), w.hello.peer_address});
    w.has_state = true;
    w.lineage = running;
    w.position = Position{200, 0};
    w.generation = Generation{1, 4};
    w.term = 1;
  }
  for (int i : {0, 1}) chief.worker(i).members = members;
  FakeWorker& other = chief.worker(2);
  other.has_state = true;
  other.lineage = "lineage-1+1.5";
  other.position = Position{55, 0};
  other.term = 1;
  // At rest it says its lineage in its Hello, else again when it acknowledges that its generation is over.
  SECTION("at rest") {}
  SECTION("still running") {
    other.generation = Generation{1, 5};
    other.members = {Member{other.id, "worker-2", other.hello.peer_address}};
  }
  SECTION("still running, its members not complete") {
    other.generation = Generation{1, 5};
    other.members = {Member{other.id, "worker-2", other.hello.peer_address}, Member{Incarnation{9, 9}, "worker-3", ""}};
    chief.Connect(2);
  }

  for (int i : {0, 1}) chief.Connect(i);
  REQUIRE(chief.phase() == Phase::kRunning);
  if (!other.connected) chief.Connect(2);

  CHECK(chief.View().lineage == running);
  chief.StepTo(201);
  CHECK(chief.View().agreed_step == 201);
  chief.TakeSnapshots(SnapshotCause::kDue);
  CHECK(chief.View().published_step == 201);
  chief.MeetAtBoundary();
  const Form form = chief.LastCommand<Form>(2);
  CHECK(form.position == Position{201, 0});
  REQUIRE(form.receivers.size() == 1);
  CHECK(form.members[form.receivers[0]].incarnation == other.id);
}

TEST_CASE("coordinator: under `fast` a state that is older than what is published is no source", "[core]") {
  ChiefHarness chief({.min = 1,
                      .term = 2,
                      .checkpoint_step = 20,
                      .plan = "plan-1",
                      .policy = Fast(),
                      .checkpoint_lineage = "lineage-1+1.5"});
  FakeWorker& w = chief.worker(0);
  w.has_state = true;
  w.lineage = "lineage-1+1.4";
  w.position = Position{30, 0};
  w.term = 1;

  chief.Connect(0);
  chief.Advance(absl::Seconds(40));

  const Form form = chief.LastCommand<Form>(0);
  REQUIRE(form.restore.has_value());
  CHECK(form.restore->step == 20);
}

// A job of 50 steps under `fast` whose only worker was asked to leave halfway through the evaluation of the last one:
// that step is published, its evaluation is not done, and a new process has restored it.
ChiefHarness PublishBeforeEvaluation() {
  JobPolicy policy = Fast();
  policy.training.eval_slices = 4;
  ChiefHarness chief({.workers = 1, .end_step = 50, .policy = policy});
  chief.StepTo(49);
  FakeWorker& leaver = chief.worker(0);
  leaver.leaving = true;
  leaver.position = Position{50, 2};
  chief.Say(0, LeaveIntent{absl::Seconds(20)});
  chief.ComeToBoundary(0);
  REQUIRE(chief.Count<PublishCommit>() == 1);
  REQUIRE_FALSE(chief.Last<StoreManifest>().evaluated);
  chief.Kill(0);
  chief.Connect(0);
  chief.Advance(absl::Seconds(10));
  REQUIRE(chief.LastCommand<Form>(0).restore == chief.Last<PublishCommit>().snapshot);
  return chief;
}

TEST_CASE("coordinator: under `fast` a later lineage completes the evaluation of the published last step", "[core]") {
  ChiefHarness chief = PublishBeforeEvaluation();
  const SnapshotId published = chief.Last<PublishCommit>().snapshot;
  FakeWorker& w = chief.worker(0);
  REQUIRE(w.lineage != published.lineage);
  w.position = Position{50, 4};

  SECTION("at the last boundary") { chief.TakeSnapshots(SnapshotCause::kEnd); }
  SECTION("at rest, its generation being broken") {
    chief.Say(0, PeerFailed{w.generation, {}, false, "a connection broke"});
  }

  REQUIRE(chief.Count<AmendManifest>() == 1);
  CHECK(chief.Last<AmendManifest>().snapshot == published);
  CHECK(w.snapshots.empty());
  CHECK(w.exit_code == 0);
  CHECK(chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: under `fast` an evaluated state waits for the save of the same bits under an older lineage",
          "[core]") {
  JobPolicy policy = Fast();
  policy.training.eval_slices = 4;
  ChiefHarness chief({.workers = 2, .min = 2, .end_step = 50, .policy = policy});
  const Lineage older = chief.worker(0).lineage;
  chief.StepTo(49);
  // Too few workers are left halfway through the evaluation; while the state of one is being stored another comes.
  for (int i : {0, 1}) chief.worker(i).position = Position{50, 2};
  chief.storing = false;
  chief.Kill(1);
  chief.Advance(policy.wait_for_min + absl::Seconds(1));
  REQUIRE(chief.Count<StoreManifest>() == 1);
  chief.Connect(1);
  REQUIRE(chief.worker(0).lineage != older);
  REQUIRE(chief.worker(1).lineage == chief.worker(0).lineage);

  for (int i : {0, 1}) chief.worker(i).position = Position{50, 4};
  chief.TakeSnapshots(SnapshotCause::kEnd);
  CHECK(chief.Commands<SnapshotEnded>(1).empty());
  CHECK(chief.phase() == Phase::kFinishing);
  chief.storing = true;
  const SnapshotId stored = chief.Last<StoreManifest>().snapshot;
  REQUIRE(stored.lineage == older);
  chief.Do(ManifestStored{stored, stored.digest});

  CHECK(chief.Count<StoreManifest>() == 1);
  CHECK(chief.Last<PublishCommit>().snapshot == stored);
  CHECK(chief.Last<AmendManifest>().snapshot == stored);
  CHECK(chief.LastCommand<SnapshotEnded>(1).published);
  CHECK(chief.worker(1).exit_code == 0);
}

TEST_CASE("coordinator: under `fast` a state that is published under an older lineage counts as published", "[core]") {
  JobPolicy policy = Fast();
  policy.training.eval_slices = 2;
  policy.training.eval_every_steps = 10;
  ChiefHarness chief({.workers = 1, .policy = policy});
  chief.StepTo(10);
  chief.worker(0).position = Position{10, 2};
  chief.TakeSnapshots(SnapshotCause::kBest);
  REQUIRE(chief.View().published_step == 10);
  const Lineage older = chief.worker(0).lineage;
  chief.Say(0, PeerFailed{chief.worker(0).generation, {}, false, "a connection broke"});
  REQUIRE(chief.worker(0).lineage != older);
  REQUIRE(chief.worker(0).position == Position{10, 2});

  chief.TakeSnapshots(SnapshotCause::kBest);

  CHECK(chief.LastCommand<SnapshotEnded>(0).snapshot.lineage == chief.worker(0).lineage);
  CHECK(chief.LastCommand<SnapshotEnded>(0).published);
}

}  // namespace
}  // namespace lockstep::chief
