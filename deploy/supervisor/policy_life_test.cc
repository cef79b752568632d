// Children that do not run: what the supervisor concludes, and what it must not.
#include <catch2/catch.hpp>
#include <csignal>
#include <string>

#include "deploy/supervisor/policy_harness.h"

namespace lockstep::supervisor {
namespace {

TEST_CASE("supervisor: a chief that does not run is examined, killed and replaced within ten seconds", "[supervisor]") {
  Harness h({.workers = 1});
  CHECK(h.Watch(kChief, h.now + absl::Minutes(1), absl::Minutes(1)));
  const absl::Time stopped = h.now;

  CHECK_FALSE(h.Watch(kChief, stopped, absl::Minutes(1)));

  CHECK(h.now <= stopped + absl::Seconds(10));
  REQUIRE(h.last.size() == 2);
  CHECK(h.Examined(kChief));
  CHECK(std::get<Signal>(h.last[1]).reason == "it is stopped and has not run for 9s");  // behind what it was at
  h.Die(kChief, SIGKILL);
  CHECK(h.Spawned(kChief));
  CHECK(h.Signalled(Worker(0)) == 0);
}

TEST_CASE("supervisor: a worker that does not run is replaced as well", "[supervisor]") {
  Harness h({.workers = 2});

  CHECK_FALSE(h.Watch(Worker(1), h.now, absl::Minutes(1)));

  h.Die(Worker(1), SIGKILL);
  h.After(absl::Seconds(5));
  CHECK(h.policy.kills() == 0);
}

TEST_CASE("supervisor: a machine that was suspended costs nobody its life", "[supervisor]") {
  Harness h({.workers = 1});
  REQUIRE(h.Watch(kChief, h.now + absl::Seconds(5), absl::Seconds(5)));
  const absl::Time asleep = h.now;

  h.now += absl::Hours(8);

  CHECK(h.Watch(kChief, asleep, absl::Seconds(7)));
  CHECK(h.Watch(kChief, h.now + absl::Minutes(1), absl::Minutes(1)));
}

TEST_CASE("supervisor: a process that a debugger holds is left alone", "[supervisor]") {
  Harness h({.workers = 1});

  CHECK(h.Watch(kChief, h.now, absl::Hours(1), /*debugged=*/true));
  CHECK_FALSE(h.Watch(kChief, h.now - absl::Hours(1), absl::Seconds(5)));  // once it is gone
}

TEST_CASE("supervisor: the successor of a process that did not run has the whole time again", "[supervisor]") {
  Harness h({.workers = 1});
  REQUIRE_FALSE(h.Watch(kChief, h.now, absl::Minutes(1)));
  h.Die(kChief, SIGKILL);

  CHECK(h.Watch(kChief, h.now, absl::Seconds(8)));
}

TEST_CASE("supervisor: what is left after the grace is examined before it is killed", "[supervisor]") {
  Harness h({.workers = 1, .grace = absl::Seconds(10)});
  h.Exit(kChief, 0);

  h.After(absl::Seconds(10));

  REQUIRE(h.last.size() == 2);
  CHECK(h.Examined(Worker(0)));
  CHECK(std::get<Signal>(h.last[1]).number == SIGKILL);
}

}  // namespace
}  // namespace lockstep::supervisor
