// How a supervisor stops: stop signals, a second one, terminals that close, a chief that is down.
#include <catch2/catch.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "deploy/supervisor/policy_harness.h"

namespace lockstep::supervisor {
namespace {

TEST_CASE("supervisor: the first stop asks the chief, the second ends at once", "[supervisor]") {
  Harness h({.workers = 2});
  h.now += absl::Seconds(10);

  h.Apply(StopSignal{});
  CHECK(h.Said() ==
        std::vector<std::string>{"stopping: saving first (press Ctrl-C again after a second to end without saving)"});
  CHECK(h.Signalled(kChief) == SIGTERM);
  CHECK(h.Signalled(Worker(0)) == 0);
  h.Die(Worker(0), SIGKILL);
  CHECK_FALSE(h.Spawned(Worker(0)));
  h.now += absl::Seconds(1);
  h.Apply(StopSignal{});
  CHECK(h.Signalled(kChief) == SIGKILL);
  CHECK(h.Signalled(Worker(1)) == SIGKILL);
  h.Die(Worker(1), SIGKILL);
  h.Die(kChief, SIGKILL);
  CHECK(h.Ended() == kSecondStopExit);
  CHECK(kSecondStopExit == 130);
}

TEST_CASE("supervisor: a stop while the chief is down promises no save", "[supervisor]") {
  Harness h({.workers = 1});
  h.Die(kChief, SIGKILL);

  h.Apply(StopSignal{});

  CHECK(h.Said() == std::vector<std::string>{"stopping"});
  CHECK(h.Signalled(Worker(0)) == SIGTERM);
  h.Exit(Worker(0), 75);
  CHECK(h.Ended() == 75);
}

TEST_CASE("supervisor: stop signals that come together are one, and a terminal that closes is never the second",
          "[supervisor]") {
  Harness h({.workers = 1});
  h.now += absl::Seconds(10);

  h.Apply(StopSignal{});
  CHECK(h.Signalled(kChief) == SIGTERM);
  h.now += absl::Microseconds(3);
  h.Apply(StopSignal{});
  CHECK(h.last.empty());
  h.now += absl::Milliseconds(999);
  h.Apply(StopSignal{});
  CHECK(h.last.empty());
  h.now += absl::Minutes(1);
  h.Apply(StopSignal{.hangup = true});
  CHECK(h.last.empty());

  h.Exit(kChief, 75);
  h.Exit(Worker(0), 75);
  CHECK(h.Ended() == 75);
}

TEST_CASE("supervisor: a terminal that closes asks the chief to save first", "[supervisor]") {
  Harness h({.workers = 1});
  h.now += absl::Seconds(10);

  h.Apply(StopSignal{.hangup = true});
  CHECK(h.Signalled(kChief) == SIGTERM);
  CHECK(h.Signalled(Worker(0)) == 0);
  h.Exit(kChief, 75);
  h.Exit(Worker(0), 75);

  CHECK(h.Ended() == 75);
}

TEST_CASE("supervisor: a stop waits for the save of a living chief, however long that takes", "[supervisor]") {
  Harness h({.workers = 1, .grace = absl::Seconds(30)});
  h.Apply(StopSignal{});

  h.After(absl::Hours(1));
  CHECK(h.Count(SIGKILL) == 0);
  CHECK(h.policy.NextDeadline() == absl::InfiniteFuture());
  h.Exit(kChief, 75);
  CHECK(h.Signalled(Worker(0)) == SIGTERM);

  h.After(absl::Seconds(29));
  CHECK(h.Count(SIGKILL) == 0);
  h.After(absl::Seconds(1));
  CHECK(h.Signalled(Worker(0)) == SIGKILL);
}

}  // namespace
}  // namespace lockstep::supervisor
