// Names that two processes ask for.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("names: a live worker keeps its name and its place, whoever asks for the name", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(3);
  chief.worker(5).hello.preferred_name = "worker-0";
  chief.worker(5).hello.host = "host-0";
  chief.Forget();

  chief.Connect(5);
  CHECK(chief.Commands<Welcome>(5).empty());
  chief.Advance(absl::Milliseconds(1500));

  CHECK(chief.worker(5).name == "worker-2");
  CHECK(chief.worker(0).connected);
  CHECK(chief.Commands<Verdict>(0).empty());
  CHECK(chief.Count<CloseSession>() == 0);
  CHECK_THAT(chief.Said(), Contains("another process on host-0 asks for the name worker-0"));
}

TEST_CASE("names: a process that takes the place of a dead one gets its name at once", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(3);
  const SessionId old = chief.worker(1).session;
  chief.worker(1).connected = false;  // SIGKILL: its end is not heard yet
  chief.NewProcess(1);
  chief.Connect(1);
  REQUIRE(chief.Commands<Welcome>(1).empty());

  chief.Do(SessionClosed{old, "reset"});

  CHECK(chief.worker(1).name == "worker-1");
  CHECK(chief.phase() == Phase::kRunning);
}

TEST_CASE("names: the name of a machine that vanished is free when its silence counts as death", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.worker(1).beating = false;
  const int again = 7;
  chief.worker(again).hello = chief.worker(1).hello;
  chief.Connect(again);

  chief.Advance(absl::Seconds(3));
  CHECK(chief.Commands<Welcome>(again).empty());
  chief.Connect(again);  // it gave up its first session, and asks on another
  chief.Advance(absl::Seconds(3));

  CHECK(chief.worker(again).name == "worker-1");
}

TEST_CASE("names: a process whose predecessor a supervisor saw end gets its name at once", "[core]") {
  const bool asks_first = GENERATE(true, false);
  ChiefHarness chief({.workers = 2});
  chief.StepTo(3);
  chief.worker(1).connected = false;  // its host is gone: no reset comes
  chief.NewProcess(1);
  chief.Advance(absl::Milliseconds(100));
  if (asks_first) chief.Connect(1);
  CHECK(chief.Commands<Welcome>(1).empty());

  chief.Do(ProcessExited{"worker-1", 9, 0});
  if (!asks_first) chief.Connect(1);

  CHECK(chief.worker(1).name == "worker-1");
  CHECK(chief.phase() == Phase::kRunning);
}

TEST_CASE("names: a report of an earlier process takes no name from a worker that is heard", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(3);
  chief.Kill(1);
  chief.Connect(1);
  chief.MeetAtBoundary();
  chief.Do(ProcessExited{"worker-1", 9, 0});  // late
  chief.worker(5).hello = chief.worker(1).hello;
  chief.Advance(absl::Seconds(1));
  chief.Forget();

  chief.Connect(5);
  chief.Advance(absl::Milliseconds(1500));

  CHECK(chief.worker(5).name == "worker-2");
  CHECK(chief.worker(1).connected);
  CHECK(chief.Commands<Verdict>(0).empty());
}

}  // namespace
}  // namespace lockstep::chief
