#include "worker/session/session_core.h"

#include <catch2/catch.hpp>

#include "worker/session/session_core_harness.h"

namespace lockstep::worker {
namespace {

using Phase = SessionCore::Phase;

ControlWord Asking(const WorkerHarness& worker, RequestKind kind, uint64_t number) {
  ControlWord word = worker.Word();
  word.slots[1].request(kind) = number;
  return word;
}

TEST_CASE("session: a worker joins, prepares, forms and steps", "[session]") {
  WorkerHarness worker;

  worker.Give(Tick{});
  CHECK(worker.Has<Connect>());
  worker.Give(ChiefConnected{});
  CHECK(worker.Message<Hello>().preferred_name == "worker-0");
  worker.Command(Welcome{"job", "worker-0", "line", "graph", worker.policy});
  worker.Command(lockstep::Prepare{"graph", "plan", "data"});
  CHECK(worker.Last<PrepareReplica>().plan_hash == "plan");
  worker.Give(Prepared{Ready{"plan", "data", absl::Milliseconds(5), 100}});
  CHECK(worker.Message<Ready>().plan_hash == "plan");
  worker.GiveForm(1, 2, 0, {10, 0});
  CHECK(worker.Last<FormCommunicator>().members.size() == 2);
  worker.Give(CommunicatorFormed{{3, 1}});
  CHECK(worker.Last<SyncState>().receivers == std::vector<uint32_t>{0});
  worker.Give(StateSynced{{3, 1}, {10, 0}, "digest"});

  CHECK(worker.Message<Formed>().position == Position{10, 0});
  CHECK(worker.Last<RunStep>().step == 11);
  worker.StepTo(15);
  CHECK(worker.Last<RunStep>().step == 16);
}

TEST_CASE("session: a request only changes what the rank contributes; the word decides", "[session][rule1]") {
  WorkerHarness worker;
  worker.Run();

  worker.Command(BoundaryRequest{RequestKind::kForm, 5}, {3, 1});
  CHECK(worker.last.empty());
  CHECK(worker.Slot().request(RequestKind::kForm) == 0);
  worker.Finish(11, worker.Word());
  CHECK(worker.Slot().request(RequestKind::kForm) == 5);
  CHECK(worker.core.phase() == Phase::kRunning);
  worker.Finish(12, worker.Word());
  CHECK(worker.Message<AtBoundary>().position == Position{12, 0});
}

TEST_CASE("session: a rank stops at the word although it heard of no request, and does not serve it twice",
          "[session][rule1]") {
  WorkerHarness worker;
  worker.Run();

  worker.Finish(11, Asking(worker, RequestKind::kSnapshot, 4));
  REQUIRE(worker.Has<TakeSnapshot>());
  worker.Command(BoundaryRequest{RequestKind::kSnapshot, 4}, {3, 1});
  worker.Finish(12, worker.Word());

  CHECK(worker.Slot().request(RequestKind::kSnapshot) == 0);
}

TEST_CASE("session: requests of one boundary are served in their order", "[session][rule2]") {
  WorkerHarness worker;
  worker.policy.audit_every_steps = 11;
  worker.Run();
  ControlWord word = Asking(worker, RequestKind::kForm, 9);
  word.slots[1].request(RequestKind::kSnapshotHold) = 8;

  worker.Finish(11, word);
  REQUIRE(worker.Has<TakeSnapshot>());
  CHECK_FALSE(worker.Told<AtBoundary>());
  CHECK_FALSE(worker.Has<RunStep>());
  worker.Give(SnapshotDone{{"line", 11, "d11"}});
  CHECK(worker.Message<SnapshotTaken>().cause == SnapshotCause::kHold);
  CHECK(worker.Message<Report>().digests.back().digest == "d11");
  worker.Command(SnapshotEnded{{"line", 11, "d11"}, true});

  CHECK(worker.Told<AtBoundary>());
}

TEST_CASE("session: a replica at rest is commanded directly, and only where it stands", "[session][rule3]") {
  WorkerHarness worker;
  worker.Run();

  worker.Command(lockstep::TakeSnapshot{"line", {10, 0}});
  CHECK(worker.Message<CommandRejected>().command == std::string("TakeSnapshot"));
  worker.Finish(11, Asking(worker, RequestKind::kForm, 9));
  worker.Command(lockstep::TakeSnapshot{"line", {12, 0}});
  CHECK(worker.Told<CommandRejected>());
  worker.Command(lockstep::TakeSnapshot{"other", {11, 0}});
  CHECK(worker.Told<CommandRejected>());

  worker.Command(lockstep::TakeSnapshot{"line", {11, 0}});
  CHECK(worker.Last<TakeSnapshot>().step == 11);
  worker.Give(SnapshotDone{{"line", 11, "d11"}});
  CHECK(worker.Message<SnapshotTaken>().cause == SnapshotCause::kAtRest);
}

TEST_CASE("session: the snapshot with which the job ends is marked, and no other", "[session]") {
  WorkerHarness worker;
  worker.Run();

  worker.Finish(11, Asking(worker, RequestKind::kSnapshot, 8));
  REQUIRE(worker.Has<TakeSnapshot>());
  CHECK_FALSE(worker.Last<TakeSnapshot>().last);
  worker.Finish(12, Asking(worker, RequestKind::kStop, 9));

  CHECK(worker.Last<TakeSnapshot>().step == 12);
  CHECK(worker.Last<TakeSnapshot>().last);
}

TEST_CASE("session: a break clears the word, and a leave is asked again", "[session][rule4]") {
  WorkerHarness worker;
  worker.Run();
  worker.Give(TermSignal{absl::Seconds(30)});
  worker.Command(BoundaryRequest{RequestKind::kSnapshot, 5}, {3, 1});

  worker.Command(Verdict{"a peer died"}, {3, 1});
  worker.Give(ComputingStopped{{3, 1}, false});
  worker.FormAt(2, 2, 0, {10, 0});

  CHECK(worker.Slot().request(RequestKind::kLeave) == 1);
  CHECK(worker.Slot().request(RequestKind::kSnapshot) == 0);
}

TEST_CASE("session: a leaver waits at its boundary until it is dismissed or its grace ends", "[session][rule4]") {
  WorkerHarness worker;
  worker.Run();
  worker.Give(TermSignal{absl::Seconds(30)});
  worker.StepTo(12);
  REQUIRE(worker.Message<AtBoundary>().leaving);
  CHECK_FALSE(worker.ExitCode().has_value());

  SECTION("dismissed") {
    worker.Command(Dismiss{"all have applied it"});
    CHECK(worker.ExitCode() == 75);
  }
  SECTION("the grace ends") {
    worker.Wait(absl::Seconds(20));
    CHECK_FALSE(worker.ExitCode().has_value());
    worker.Wait(absl::Seconds(10));
    CHECK(worker.ExitCode() == 75);
  }
}

TEST_CASE("session: an update that had begun counts, although the generation broke meanwhile", "[session][rule5]") {
  WorkerHarness worker;
  worker.Run();

  worker.Command(Verdict{"a peer died"}, {3, 1});
  CHECK(worker.Has<AbortCollectives>());
  worker.Finish(11, worker.Word());
  CHECK_FALSE(worker.Has<RunStep>());
  worker.Give(ComputingStopped{{3, 1}, false});

  CHECK(worker.Message<VerdictAck>().position == Position{11, 0});
}

TEST_CASE("session: a hold for a save ends when the save does, or when the chief is lost", "[session][rule6]") {
  WorkerHarness worker;
  worker.Run();
  worker.Finish(11, Asking(worker, RequestKind::kSnapshotHold, 2));
  worker.Give(SnapshotDone{{"line", 11, "d11"}});
  REQUIRE(worker.core.phase() == Phase::kHolding);

  SECTION("published") { worker.Command(SnapshotEnded{{"line", 11, "d11"}, true}); }
  SECTION("abandoned") { worker.Command(SnapshotEnded{{"line", 11, "d11"}, false}); }
  SECTION("the chief is lost") { worker.Give(ChiefDisconnected{"reset", false}); }

  CHECK(worker.Last<RunStep>().step == 12);
}

TEST_CASE("session: a meeting at a boundary ends when the chief is lost", "[session][rule6]") {
  WorkerHarness worker;
  worker.Run();
  worker.Finish(11, Asking(worker, RequestKind::kForm, 2));
  REQUIRE(worker.core.phase() == Phase::kHolding);

  worker.Give(ChiefDisconnected{"reset", false});

  CHECK(worker.Last<RunStep>().step == 12);
}

TEST_CASE("session: a leave that no chief can follow ends the generation for those who stay", "[session][rule6]") {
  WorkerHarness worker;
  worker.Run();
  worker.Give(ChiefDisconnected{"gone", false});
  worker.Finish(11, worker.Word());
  ControlWord word = Asking(worker, RequestKind::kLeave, 1);

  worker.Finish(12, word);

  CHECK(worker.Has<StopComputing>());
  worker.Give(ComputingStopped{{3, 1}, false});
  CHECK(worker.core.has_state());
  CHECK(worker.core.phase() == Phase::kIdle);
}

TEST_CASE("session: the last boundary is held through the loss of the chief", "[session][rule6]") {
  WorkerHarness worker;
  worker.policy.end_step = 11;
  worker.Run();
  worker.Finish(11, worker.Word());
  worker.Give(SnapshotDone{{"line", 11, "d11"}});
  CHECK(worker.Message<SnapshotTaken>().cause == SnapshotCause::kEnd);

  worker.Give(ChiefDisconnected{"gone", false});
  CHECK_FALSE(worker.Has<RunStep>());
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});
  const Hello hello = worker.Message<Hello>();
  CHECK(hello.activity == Activity::kFinished);
  CHECK(hello.snapshots == std::vector<SnapshotId>{{"line", 11, "d11"}});
  worker.Command(Welcome{"job", "worker-0", "line", "graph", worker.policy}, {}, 4);
  worker.Command(Done{0, 11, "d11"}, {}, 4);
  CHECK(worker.ExitCode() == 0);
}

TEST_CASE("session: evaluation goes slice by slice and its position is part of the state", "[session][rule7]") {
  WorkerHarness worker;
  worker.policy.eval_every_steps = 11;
  worker.policy.eval_slices = 2;
  worker.Run();
  worker.Finish(11, worker.Word());
  REQUIRE(worker.Last<RunSlice>().slice == 0);

  worker.Give(SliceFinished{{3, 1}, 11, worker.Word(), SliceResult{0, {.loss = 3}}});
  CHECK(worker.Message<EvalReport>().slices.at(0).slice == 0);
  CHECK(worker.Last<RunSlice>().slice == 1);
  worker.Command(Verdict{"a peer died"}, {3, 1});
  worker.Give(ComputingStopped{{3, 1}, false});
  CHECK(worker.Message<VerdictAck>().position == Position{11, 1});

  worker.FormAt(2, 2, 0, {11, 1});
  CHECK(worker.Last<RunSlice>().slice == 1);
  worker.Give(SliceFinished{{3, 2}, 11, worker.Word(), SliceResult{1, {}}});
  CHECK(worker.Last<RunStep>().step == 12);
}

TEST_CASE("session: a verdict is acknowledged only after computing has stopped", "[session][rule8]") {
  WorkerHarness worker;
  worker.Run();

  worker.Command(Verdict{"a peer died"}, {3, 1});
  CHECK(worker.Last<AbortCollectives>().generation == Generation{3, 1});
  CHECK(worker.Has<StopComputing>());
  CHECK_FALSE(worker.Told<VerdictAck>());
  worker.Give(CollectiveFailed{{3, 1}, {}, false, "aborted"});
  CHECK_FALSE(worker.Told<VerdictAck>());
  worker.Give(ComputingStopped{{3, 1}, false});

  const VerdictAck ack = worker.Message<VerdictAck>();
  CHECK(ack.has_state);
  CHECK(ack.lineage == "line");
  CHECK(ack.position == Position{10, 0});
}

TEST_CASE("session: where bits may differ an acknowledgement carries the digest", "[session][rule8]") {
  WorkerHarness worker;
  worker.policy.digest_in_acks = true;
  worker.Run();

  worker.Command(Verdict{"a peer died"}, {3, 1});
  worker.Give(ComputingStopped{{3, 1}, false});
  REQUIRE(worker.Has<ComputeDigest>());
  CHECK_FALSE(worker.Told<VerdictAck>());
  worker.Give(DigestComputed{{10, 0}, "d10"});

  CHECK(worker.Message<VerdictAck>().digest == "d10");
}

TEST_CASE("session: where bits may differ a kept state goes on under the name of the new generation", "[session]") {
  WorkerHarness worker;
  worker.policy.digest_in_acks = true;
  worker.Join();
  worker.Prepare();
  Form form;
  form.position = {10, 0};
  form.members = {Member{{0, 1}, "w", "a"}, Member{{0, 2}, "v", "b"}};
  const auto give = [&](uint64_t counter, std::vector<uint32_t> receivers) {
    form.lineage = LineageOf("line", Generation{3, counter});
    form.receivers = std::move(receivers);
    worker.Command(form, {3, counter});
    worker.Give(CommunicatorFormed{{3, counter}});
    if (worker.Has<SyncState>()) worker.Give(StateSynced{{3, counter}, form.position, "digest"});
  };
  give(1, {0});
  CHECK(worker.core.lineage() == "line+3.1");
  worker.StepTo(12);
  worker.Command(Verdict{"a peer died"}, {3, 1});
  worker.Give(ComputingStopped{{3, 1}, false});
  worker.Give(DigestComputed{{12, 0}, "d12"});
  CHECK(worker.Message<VerdictAck>().lineage == "line+3.1");

  form.position = {12, 0};
  give(2, {1});
  CHECK(worker.core.lineage() == "line+3.2");
  CHECK(worker.Has<RunStep>());
  worker.Command(Verdict{"a peer died"}, {3, 2});
  worker.Give(ComputingStopped{{3, 2}, false});
  worker.Give(DigestComputed{{12, 0}, "d12"});
  worker.Command(lockstep::TakeSnapshot{LineageOf("line", {3, 4}), {12, 0}}, {3, 2});
  CHECK(worker.Last<TakeSnapshot>().lineage == "line+3.4");

  // Nobody holds the state under an older name, or of another job.
  worker.Command(lockstep::TakeSnapshot{LineageOf("line", {3, 1}), {12, 0}}, {3, 2});
  CHECK(worker.Told<CommandRejected>());
  worker.Command(lockstep::TakeSnapshot{LineageOf("other", {3, 9}), {12, 0}}, {3, 2});
  CHECK(worker.Told<CommandRejected>());
}

TEST_CASE("session: a verdict about a generation that does not run is answered at once", "[session][rule8]") {
  WorkerHarness worker;
  worker.Join();

  worker.Command(Verdict{"old"}, {3, 7});

  CHECK(worker.Message<VerdictAck>().generation == Generation{3, 7});
  CHECK_FALSE(worker.Message<VerdictAck>().has_state);
}

TEST_CASE("session: a state that was half overwritten is no state", "[session][rule9]") {
  WorkerHarness worker;
  worker.Run();
  worker.Command(Verdict{"a peer died"}, {3, 1});
  worker.Give(ComputingStopped{{3, 1}, false});
  worker.GiveForm(2, 2, 0, {14, 0});
  worker.Give(CommunicatorFormed{{3, 2}});

  SECTION("its own transfer failed") {
    worker.Give(CollectiveFailed{{3, 2}, {0, 101}, true, "reset"});
    CHECK(worker.Message<PeerFailed>().suspect == Incarnation{0, 101});
    // A pair that connects and cannot carry a state is not used again and again.
    CHECK(worker.Message<PeerFailed>().while_forming);
    worker.Give(ComputingStopped{{3, 2}, false});
    worker.Command(Verdict{"it failed"}, {3, 2});
  }
  SECTION("a verdict came in between") {
    worker.Command(Verdict{"a peer died"}, {3, 2});
    worker.Give(ComputingStopped{{3, 2}, true});
  }

  CHECK(worker.Told<VerdictAck>());
  CHECK_FALSE(worker.Message<VerdictAck>().has_state);
}

TEST_CASE("session: a Form that would take an applied step back is rejected", "[session][rule9]") {
  WorkerHarness worker;
  worker.Run();
  worker.StepTo(12);
  worker.Command(Verdict{"a peer died"}, {3, 1});
  worker.Give(ComputingStopped{{3, 1}, false});

  worker.GiveForm(2, 2, 0, {11, 0});
  CHECK(worker.Told<CommandRejected>());
  CHECK(worker.core.generation().IsNone());
  worker.GiveForm(2, 2, 0, {13, 0});
  CHECK(worker.Has<FormCommunicator>());
}

TEST_CASE("session: who keeps its state must hold exactly the one that is meant", "[session][rule9]") {
  WorkerHarness worker;
  worker.Join();
  worker.Prepare();
  Form form;
  form.lineage = "line";
  form.position = {10, 0};
  form.members = {Member{{0, 1}, "w", "a"}, Member{{0, 2}, "v", "b"}};
  form.receivers = {1};

  worker.Command(form, {3, 1});

  CHECK(worker.Message<CommandRejected>().command == std::string("Form"));
}

}  // namespace
}  // namespace lockstep::worker
