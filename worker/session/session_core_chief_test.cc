#include <algorithm>
#include <catch2/catch.hpp>

#include "worker/session/session_core.h"
#include "worker/session/session_core_harness.h"

namespace lockstep::worker {
namespace {

using Phase = SessionCore::Phase;

ControlWord AskingOfChief(const WorkerHarness& worker, RequestKind kind, uint64_t number) {
  ControlWord word = worker.Word();
  word.slots[1].request(kind) = number;
  return word;
}

TEST_CASE("session: what does not fit term or generation changes nothing and is answered", "[session][rule10]") {
  WorkerHarness worker;
  worker.Run();

  worker.Command(Verdict{"from an older chief"}, {3, 1}, 2);
  CHECK(worker.Told<CommandRejected>());
  worker.Command(BoundaryRequest{RequestKind::kForm, 3}, {2, 9});
  CHECK(worker.Told<CommandRejected>());
  worker.Command(Verdict{"about an older generation"}, {2, 9});
  CHECK(worker.Told<CommandRejected>());
  worker.Command(Shutdown{0, "from another term"}, {}, 9);
  CHECK(worker.Told<CommandRejected>());

  CHECK_FALSE(worker.ExitCode().has_value());
  worker.Finish(11, worker.Word());
  CHECK(worker.Last<RunStep>().step == 12);
}

TEST_CASE("session: a generation is formed once", "[session][rule10]") {
  WorkerHarness worker;
  worker.Run();
  worker.Command(Verdict{"a peer died"}, {3, 1});
  worker.Give(ComputingStopped{{3, 1}, false});

  worker.GiveForm(1, 2, 0, {10, 0});
  CHECK(worker.Told<CommandRejected>());
  worker.Command(Verdict{"that one is over as well"}, {3, 2});
  worker.GiveForm(2, 2, 0, {10, 0});
  CHECK(worker.Told<CommandRejected>());
  worker.GiveForm(3, 2, 0, {10, 0});
  CHECK(worker.Has<FormCommunicator>());
}

TEST_CASE("session: a replaced chief is not followed", "[session][rule10]") {
  WorkerHarness worker;
  worker.Join(5);
  worker.Give(ChiefDisconnected{"reset", false});
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});
  CHECK(worker.Message<Hello>().highest_term == 5);

  worker.Command(Welcome{"job", "worker-0", "line", "graph", worker.policy}, {}, 4);

  CHECK(worker.Told<CommandRejected>());
  CHECK(worker.Has<Disconnect>());
  worker.Wait(absl::Seconds(1));
  CHECK(worker.Has<Connect>());
}

TEST_CASE("session: the chief is tried every second at least, and a Fenced is answered with a new Hello",
          "[session][rule10]") {
  WorkerHarness worker;
  worker.Give(Tick{});
  worker.Give(ChiefDisconnected{"refused", false});
  worker.Wait(absl::Milliseconds(490));
  CHECK_FALSE(worker.Has<Connect>());
  worker.Wait(absl::Milliseconds(510));
  CHECK(worker.Has<Connect>());
  worker.Give(ChiefConnected{});
  worker.Command(Welcome{"job", "worker-0", "line", "graph", worker.policy});

  worker.Command(Fenced{"who are you?"}, {}, 9);

  CHECK(worker.Told<Hello>());
}

TEST_CASE("session: a generation goes on under a chief that began later, not under other settings", "[session]") {
  WorkerHarness worker;
  worker.Run();
  worker.Give(ChiefDisconnected{"reset", false});
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});
  Welcome welcome{"job", "worker-0", "line", "graph", worker.policy};

  SECTION("only the checkpoint that it began with is another") {
    welcome.policy.stop_after = 10;
    worker.Command(welcome, {}, 4);
    CHECK_FALSE(worker.Told<PeerFailed>());
    worker.Finish(11, worker.Word());
    CHECK(worker.Last<RunStep>().step == 12);
  }
  SECTION("the job is to end later") {
    ++welcome.policy.end_step;
    worker.Command(welcome, {}, 4);
    CHECK(worker.Told<PeerFailed>());
  }
}

TEST_CASE("session: a chief that accepts and says nothing is given up", "[session][rule10]") {
  WorkerHarness worker;
  worker.Give(Tick{});
  worker.Give(ChiefConnected{});

  worker.Wait(absl::Seconds(5));

  CHECK(worker.Has<Disconnect>());
  CHECK(worker.Has<Connect>());
}

TEST_CASE("session: a worker that loses its chief steps on and names its generation when it is back",
          "[session][rule8][rule14]") {
  WorkerHarness worker;
  worker.Run();

  worker.Give(ChiefDisconnected{"reset", false});
  CHECK_FALSE(worker.Has<AbortCollectives>());
  worker.Finish(11, worker.Word());
  CHECK(worker.Last<RunStep>().step == 12);
  CHECK_FALSE(worker.Last<RunStep>().slot.hears_chief);
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});
  const Hello hello = worker.Message<Hello>();
  CHECK(hello.activity == Activity::kRunning);
  CHECK(hello.generation == Generation{3, 1});
  CHECK(hello.members.size() == 2);
  CHECK(hello.ready.has_value());
  worker.Command(Welcome{"job", "worker-0", "line", "graph", worker.policy}, {}, 4);
  worker.Finish(12, worker.Word());

  CHECK(worker.Last<RunStep>().slot.hears_chief);
}

TEST_CASE("session: a worker that lost its group and its chief says idle only after computing has stopped",
          "[session][rule8]") {
  WorkerHarness worker;
  worker.Run();
  worker.Give(ChiefDisconnected{"reset", false});
  worker.Wait(absl::Seconds(2));
  worker.Give(CollectiveFailed{{3, 1}, {}, false, "reset"});

  worker.Give(ChiefConnected{});
  CHECK_FALSE(worker.Told<Hello>());
  worker.Finish(11, worker.Word());
  worker.Give(ComputingStopped{{3, 1}, false});

  CHECK(worker.Message<Hello>().activity == Activity::kIdle);
  CHECK(worker.Message<Hello>().position == Position{11, 0});
}

TEST_CASE("session: a group that breaks and comes to rest before the Welcome is told after it", "[session][rule8]") {
  WorkerHarness worker;
  worker.Run();
  worker.Give(ChiefDisconnected{"reset", false});
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});
  REQUIRE(worker.Message<Hello>().activity == Activity::kRunning);

  worker.Give(CollectiveFailed{{3, 1}, {0, 101}, false, "reset"});
  worker.Give(ComputingStopped{{3, 1}, false});
  worker.Command(Welcome{"job", "worker-0", "line", "graph", worker.policy}, {3, 1}, 4);

  REQUIRE(worker.Told<PeerFailed>());
  CHECK(worker.Message<PeerFailed>().generation == Generation{3, 1});
  worker.Command(Welcome{"job", "worker-0", "line", "graph", worker.policy}, {}, 4);
  CHECK_FALSE(worker.Told<PeerFailed>());
}

TEST_CASE("session: a communicator cannot be formed without the chief", "[session]") {
  WorkerHarness worker;
  worker.Join();
  worker.Prepare();
  worker.GiveForm(1, 2, 0, {10, 0});

  worker.Give(ChiefDisconnected{"reset", false});

  CHECK(worker.Has<AbortCollectives>());
  worker.Give(ComputingStopped{{3, 1}, false});
  CHECK(worker.core.generation().IsNone());
}

TEST_CASE("session: a snapshot is held until its save ended, and no other begins meanwhile", "[session][rule21]") {
  WorkerHarness worker;
  worker.policy.snapshot_every_steps = 11;
  worker.Run();
  worker.Finish(11, worker.Word());
  REQUIRE(worker.Has<TakeSnapshot>());
  CHECK(worker.Last<RunStep>().step == 12);
  worker.Give(SnapshotDone{{"line", 11, "d11"}});
  CHECK(worker.Message<SnapshotTaken>().cause == SnapshotCause::kDue);

  CHECK_FALSE(worker.Slot().free_to_save);
  worker.Command(AskShare{{"line", 11, "d11"}, 0, 2});
  CHECK(worker.Last<UploadShare>().shares == 2);
  worker.Give(ShareUploaded{{"line", 11, "d11"}, 0, 2});
  worker.StepTo(12);
  CHECK_FALSE(worker.Slot().free_to_save);
  worker.Command(AskShare{{"line", 11, "d11"}, 1, 2});
  CHECK(worker.Has<UploadShare>());

  worker.Command(SnapshotEnded{{"line", 11, "d11"}, true});
  CHECK(worker.Has<DropSnapshot>());
  worker.StepTo(13);
  CHECK(worker.Slot().free_to_save);
  worker.Command(AskShare{{"line", 11, "d11"}, 1, 2});
  CHECK(worker.Told<ShareFailed>());
}

TEST_CASE("session: a snapshot outlives its generation and the session", "[session][rule19]") {
  WorkerHarness worker;
  worker.policy.snapshot_every_steps = 11;
  worker.Run();
  worker.Finish(11, worker.Word());
  worker.Command(Verdict{"a peer died"}, {3, 1});
  worker.Give(ComputingStopped{{3, 1}, false});
  worker.Give(SnapshotDone{{"line", 11, "d11"}});
  CHECK(worker.Told<SnapshotTaken>());

  worker.Give(ChiefDisconnected{"reset", false});
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});
  CHECK(worker.Message<Hello>().snapshots.size() == 1);
}

TEST_CASE("session: while the chief is away a worker asks to leave only near the end of its grace",
          "[session][rule21]") {
  WorkerHarness worker;
  worker.policy.late_leave = absl::Seconds(5);
  worker.Run();
  worker.Give(ChiefDisconnected{"gone", false});
  worker.Give(TermSignal{absl::Seconds(30)});

  worker.StepTo(12);
  CHECK(worker.Slot().request(RequestKind::kLeave) == 0);
  worker.Wait(absl::Seconds(26));
  worker.StepTo(13);

  CHECK(worker.Slot().request(RequestKind::kLeave) == 1);
}

TEST_CASE("session: SIGTERM is honoured wherever it comes", "[session][leave]") {
  WorkerHarness worker;

  SECTION("before any chief was found") { worker.Give(TermSignal{absl::Seconds(30)}); }
  SECTION("while preparing") {
    worker.Join();
    worker.Command(lockstep::Prepare{"graph", "plan", ""});
    worker.Give(TermSignal{absl::Seconds(30)});
    CHECK(worker.Message<Left>().exit_code == 75);
  }
  SECTION("while forming: at the first boundary") {
    worker.Join();
    worker.Prepare();
    worker.GiveForm(1, 2, 0, {10, 0});
    worker.Give(TermSignal{absl::Seconds(30)});
    CHECK(worker.Told<LeaveIntent>());
    worker.Give(CommunicatorFormed{{3, 1}});
    worker.Give(StateSynced{{3, 1}, {10, 0}, "digest"});
    worker.StepTo(11);
    CHECK(worker.Message<AtBoundary>().leaving);
    worker.Command(Dismiss{""});
  }
  SECTION("parked with state: the chief may save it first") {
    worker.Run();
    worker.Command(Verdict{"a peer died"}, {3, 1});
    worker.Give(ComputingStopped{{3, 1}, false});
    worker.Give(TermSignal{absl::Seconds(30)});
    CHECK(worker.Told<LeaveIntent>());
    CHECK_FALSE(worker.ExitCode().has_value());
    worker.Command(lockstep::TakeSnapshot{"line", {10, 0}});
    CHECK(worker.Has<TakeSnapshot>());
    worker.Command(Dismiss{""});
  }
  SECTION("holding for a save") {
    worker.Run();
    worker.Finish(11, AskingOfChief(worker, RequestKind::kSnapshotHold, 2));
    worker.Give(TermSignal{absl::Seconds(30)});
    CHECK(worker.Told<LeaveIntent>());
    worker.Wait(absl::Seconds(30));
  }
  SECTION("in a step that never ends") {
    worker.Run();
    worker.Give(TermSignal{absl::Seconds(2)});
    worker.Give(TermSignal{absl::Seconds(90)});
    worker.Wait(absl::Seconds(2));
  }

  CHECK(worker.ExitCode() == 75);
}

TEST_CASE("session: exit codes", "[session][exit]") {
  WorkerHarness worker;
  int32_t expected = 0;

  SECTION("refused") {
    worker.Give(Tick{});
    worker.Give(ChiefConnected{});
    worker.Command(Refused{78, "another plan"});
    expected = 78;
  }
  SECTION("shut down") {
    worker.Run();
    worker.Command(Shutdown{70, "the failure budget is spent"});
    expected = 70;
  }
  SECTION("done, as the answer to a Hello") {
    worker.Give(Tick{});
    worker.Give(ChiefConnected{});
    worker.Command(Done{0, 1000, ""});
  }
  SECTION("bad token") {
    worker.Give(Tick{});
    worker.Give(ChiefDisconnected{"bad token", true});
    expected = 77;
  }
  SECTION("values that are no numbers") {
    worker.Run();
    worker.Give(StepFinished{{3, 1}, 11, StepOutcome::kNonFinite, worker.Word(), {}, "fc1.weight"});
    CHECK(worker.Message<ErrorReport>().message == "fc1.weight");
    // The state before that step is saved first.
    CHECK(worker.Has<TakeSnapshot>());
    worker.Give(SnapshotDone{{"line", 10, "d10"}});
    CHECK(worker.Message<SnapshotTaken>().cause == SnapshotCause::kStop);
    worker.Command(Done{65, 10, "fc1.weight"});
    expected = 65;
  }
  SECTION("an error of our own") {
    worker.Run();
    worker.Give(InternalError{70, "the update failed"});
    CHECK(worker.Message<ErrorReport>().exit_code == 70);
    expected = 70;
  }
  SECTION("an abort that does not return") {
    worker.Run();
    worker.Command(Verdict{"a peer died"}, {3, 1});
    worker.Wait(absl::Seconds(10));
    expected = 75;
  }

  CHECK(worker.ExitCode() == expected);
  worker.Give(Tick{});
  CHECK(worker.last.empty());
}

TEST_CASE("session: after a reset a worker rejoins with its state in hand", "[session]") {
  WorkerHarness worker;
  worker.Run();
  worker.StepTo(14);
  worker.Wait(absl::Seconds(5));
  worker.Give(ChiefDisconnected{"reset", false});
  worker.Give(CollectiveFailed{{3, 1}, {}, false, "the others went on without us"});
  worker.Give(ComputingStopped{{3, 1}, false});

  worker.Wait(absl::ZeroDuration());
  REQUIRE(worker.Has<Connect>());
  worker.Give(ChiefConnected{});
  CHECK(worker.Message<Hello>().has_state);
  CHECK(worker.Message<Hello>().position == Position{14, 0});
  worker.Command(Welcome{"job", "worker-0", "line", "graph", worker.policy});
  worker.FormAt(5, 2, 0, {17, 0});

  CHECK(worker.Last<RunStep>().step == 18);
}

TEST_CASE("session: steps are reported in batches, by rank 0 with their records", "[session]") {
  WorkerHarness worker;
  worker.Run();
  worker.Wait(absl::Seconds(1));
  worker.Finish(11, worker.Word());
  CHECK(worker.Message<Report>().position == Position{11, 0});
  worker.Finish(12, worker.Word());
  worker.Finish(13, worker.Word());
  CHECK_FALSE(worker.Told<Report>());

  worker.Wait(worker.policy.report_interval);

  CHECK(worker.Message<Report>().position == Position{13, 0});
  CHECK(worker.Message<Report>().records.size() == 2);
  CHECK(worker.core.NextDeadline() > worker.now);
}

}  // namespace
}  // namespace lockstep::worker
