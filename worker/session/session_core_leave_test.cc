// A worker that is told to go, wherever it stands: by SIGTERM, by another notice, by the chief.
#include <catch2/catch.hpp>

#include "worker/session/session_core.h"
#include "worker/session/session_core_harness.h"

namespace lockstep::worker {
namespace {

ControlWord AskingToLeave(const WorkerHarness& worker, RequestKind kind, uint64_t number) {
  ControlWord word = worker.Word();
  word.slots[1].request(kind) = number;
  return word;
}

TEST_CASE("session: of several notices the earliest end counts", "[session][leave]") {
  WorkerHarness worker;
  worker.Run();
  worker.Give(TermSignal{absl::Minutes(2)});
  worker.Wait(absl::Seconds(50));

  worker.Give(TermSignal{absl::Seconds(10)});
  worker.Wait(absl::Seconds(9));
  CHECK_FALSE(worker.ExitCode().has_value());
  worker.Wait(absl::Seconds(1));

  CHECK(worker.ExitCode() == 75);
}

TEST_CASE("session: a notice is told once the chief is there to hear it", "[session][leave]") {
  WorkerHarness worker;
  worker.Run();
  worker.Give(ChiefDisconnected{"gone", false});
  worker.Wait(absl::Seconds(2));

  SECTION("before it is connected: Hello says so") {
    worker.Give(TermSignal{absl::Seconds(30)});
    worker.Give(ChiefConnected{});
    CHECK(worker.Message<Hello>().leaving);
  }
  SECTION("between Hello and Welcome: it follows the Welcome") {
    worker.Give(ChiefConnected{});
    CHECK_FALSE(worker.Message<Hello>().leaving);
    worker.Give(TermSignal{absl::Seconds(30)});
    CHECK_FALSE(worker.Told<LeaveIntent>());
  }
  worker.Command(Welcome{"job", "worker-0", "line", "graph", worker.policy}, {}, 4);

  CHECK(worker.Message<LeaveIntent>().grace > absl::Seconds(20));
}

TEST_CASE("session: a worker that is asked while its computing stops leaves once that has stopped",
          "[session][leave]") {
  WorkerHarness worker;
  worker.Run();
  worker.Command(Verdict{"a peer died"}, {3, 1});

  worker.Give(TermSignal{absl::Seconds(30)});
  CHECK(worker.Told<LeaveIntent>());
  CHECK_FALSE(worker.ExitCode().has_value());
  worker.Give(ComputingStopped{{3, 1}, false});
  CHECK(worker.Message<VerdictAck>().has_state);
  worker.Command(lockstep::TakeSnapshot{"line", {10, 0}});
  CHECK(worker.Has<TakeSnapshot>());
  worker.Command(Dismiss{""});

  CHECK(worker.ExitCode() == 75);
}

TEST_CASE("session: a worker that waits at a boundary for another one's leaving leaves there too", "[session][leave]") {
  WorkerHarness worker;
  worker.Run();
  worker.Finish(11, AskingToLeave(worker, RequestKind::kLeave, 1));
  REQUIRE(worker.Told<AtBoundary>());
  CHECK_FALSE(worker.Message<AtBoundary>().leaving);

  worker.Give(TermSignal{absl::Seconds(30)});
  CHECK(worker.Told<LeaveIntent>());
  worker.Command(Dismiss{""});

  CHECK(worker.ExitCode() == 75);
}

TEST_CASE("session: a worker that keeps the last state while it is saved hears how the job ended", "[session][leave]") {
  WorkerHarness worker;
  worker.policy.end_step = 11;
  worker.Run();
  worker.Finish(11, worker.Word());
  worker.Give(SnapshotDone{{"line", 11, "d11"}});

  worker.Give(TermSignal{absl::Seconds(30)});
  CHECK(worker.Told<LeaveIntent>());
  CHECK_FALSE(worker.ExitCode().has_value());
  worker.Command(Done{0, 11, "d11"});

  CHECK(worker.ExitCode() == 0);
}

TEST_CASE("session: a worker whose chief is gone keeps its state to the end of its grace", "[session][leave]") {
  WorkerHarness worker;
  worker.Run();
  worker.Command(Verdict{"a peer died"}, {3, 1});
  worker.Give(ComputingStopped{{3, 1}, false});
  worker.Give(ChiefDisconnected{"gone", false});

  worker.Give(TermSignal{absl::Seconds(30)});
  worker.Wait(absl::Seconds(29));
  CHECK_FALSE(worker.ExitCode().has_value());
  worker.Wait(absl::Seconds(1));

  CHECK(worker.ExitCode() == 75);
}

TEST_CASE("session: a drained worker ends by the chief's word wherever it stands", "[session][leave]") {
  WorkerHarness worker;
  SECTION("before it is prepared") { worker.Join(); }
  SECTION("while it prepares") {
    worker.Join();
    worker.Command(lockstep::Prepare{"graph", "plan", ""});
  }
  SECTION("in the middle of a step") { worker.Run(); }
  SECTION("at the boundary where the members meet") {
    worker.Run();
    worker.Command(BoundaryRequest{RequestKind::kForm, 2}, {3, 1});
    worker.StepTo(12);
    REQUIRE(worker.Told<AtBoundary>());
  }
  SECTION("at rest") {
    worker.Run();
    worker.Command(Verdict{"a peer died"}, {3, 1});
    worker.Give(ComputingStopped{{3, 1}, false});
  }

  worker.Command(Shutdown{75, "drained"});

  CHECK(worker.ExitCode() == 75);
  CHECK(worker.Message<Left>().exit_code == 75);
}

TEST_CASE("session: a worker whose data are gone leaves in order, and says which", "[session][leave]") {
  WorkerHarness worker;
  worker.Run();

  worker.Give(DataLost{"a/7.png: is not the file that it was"});
  CHECK(worker.Told<LeaveIntent>());
  CHECK_FALSE(worker.Told<ErrorReport>());
  worker.Give(CollectiveFailed{worker.core.generation(), {}, false, "a/7.png: is not the file that it was", false});
  CHECK_FALSE(worker.ExitCode().has_value());

  SECTION("when the chief lets it go") {
    worker.Give(ComputingStopped{worker.core.generation(), false});
    worker.Command(Dismiss{"all is saved"});
  }
  SECTION("when its time is over") {
    worker.Give(ComputingStopped{worker.core.generation(), false});
    worker.Wait(worker.policy.grace_period);
  }
  CHECK(worker.Message<Left>().exit_code == kExitBadData);
  CHECK_THAT(worker.Message<Left>().reason, Catch::Contains("a/7.png"));
  CHECK(worker.ExitCode() == kExitBadData);
}

}  // namespace
}  // namespace lockstep::worker
