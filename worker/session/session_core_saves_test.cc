// Saves that wait for each other, and a chief of another version.
#include <catch2/catch.hpp>

#include "worker/session/session_core.h"
#include "worker/session/session_core_harness.h"

namespace lockstep::worker {
namespace {

using Phase = SessionCore::Phase;

TEST_CASE("session: where saves wait for each other, no step is made before the earlier one has ended",
          "[session][rule6]") {
  WorkerHarness worker;
  worker.policy.wait_for_saves = true;
  worker.policy.snapshot_every_steps = 2;
  worker.Run();
  worker.StepTo(12);
  worker.Give(SnapshotDone{{"line", 12, "d12"}});
  worker.StepTo(13);

  worker.Finish(14, worker.Word());
  CHECK(worker.core.phase() == Phase::kHolding);
  CHECK_FALSE(worker.Has<TakeSnapshot>());

  SECTION("it has") {
    worker.Command(SnapshotEnded{{"line", 12, "d12"}, true});
    CHECK(worker.Last<TakeSnapshot>().step == 14);
    CHECK(worker.Last<RunStep>().step == 15);
  }
  SECTION("another rank's has not, and this one's is not held here any more") {
    worker.Command(SnapshotEnded{{"line", 99, "d99"}, true});
    CHECK(worker.core.phase() == Phase::kHolding);
  }
  SECTION("the chief is lost: the save is left out") {
    worker.Give(ChiefDisconnected{"reset", false});
    CHECK_FALSE(worker.Has<TakeSnapshot>());
    CHECK(worker.Last<RunStep>().step == 15);
  }
}

TEST_CASE("session: a chief that speaks another protocol is left, by name", "[session]") {
  WorkerHarness worker;
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});

  Welcome welcome{"job", "worker-0", "line", "graph", worker.policy};
  welcome.protocol = 0;
  worker.Command(welcome);

  CHECK(worker.ExitCode() == 78);
}

}  // namespace
}  // namespace lockstep::worker
