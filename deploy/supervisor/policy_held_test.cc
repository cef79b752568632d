// Workers that are kept away: `lockstep drain` of a worker of `lockstep run`, a notice that stands.
#include <catch2/catch.hpp>

#include "deploy/supervisor/policy_harness.h"

namespace lockstep::supervisor {
namespace {

constexpr char kDrained[] = "is drained: --undo";

std::optional<Spawn> SpawnOf(const Harness& h, Role role) {
  for (const Action& action : h.last) {
    if (const auto* spawn = std::get_if<Spawn>(&action); spawn != nullptr && spawn->role == role) return *spawn;
  }
  return std::nullopt;
}

TEST_CASE("supervisor: a worker that left when it was told to is started after a question, any other without one",
          "[supervisor]") {
  Harness h({.workers = 2});
  CHECK_FALSE(SpawnOf(h, Worker(0))->may_be_held);
  h.After(absl::Seconds(10));

  h.Exit(Worker(0), 75);
  REQUIRE(SpawnOf(h, Worker(0)).has_value());
  CHECK(SpawnOf(h, Worker(0))->may_be_held);
  h.Die(Worker(1), 9);
  REQUIRE(SpawnOf(h, Worker(1)).has_value());
  CHECK_FALSE(SpawnOf(h, Worker(1))->may_be_held);
}

TEST_CASE("supervisor: a drained worker is asked for again and again, which is said once", "[supervisor]") {
  Harness h({.workers = 1, .held_for = absl::Seconds(5)});
  h.After(absl::Seconds(10));
  h.Exit(Worker(0), 75);

  h.Apply(Held{Worker(0), kDrained});
  REQUIRE(h.Said().size() == 1);
  CHECK(h.Said()[0] == "worker-0 is drained: --undo");
  h.After(absl::Seconds(4));
  CHECK_FALSE(h.Spawned(Worker(0)));
  h.After(absl::Seconds(1));
  CHECK(h.Spawned(Worker(0)));
  h.Apply(Held{Worker(0), kDrained});
  CHECK(h.Said().empty());

  h.After(absl::Seconds(5));
  CHECK(h.Spawned(Worker(0)));
  h.Apply(Held{Worker(0), "has another reason"});
  REQUIRE(h.Said().size() == 1);
  CHECK(h.Said()[0] == "worker-0 has another reason");
  CHECK_FALSE(h.Ended().has_value());
}

TEST_CASE("supervisor: a drained worker holds no end up", "[supervisor]") {
  Harness h({.workers = 1});
  h.After(absl::Seconds(10));
  h.Exit(Worker(0), 75);
  h.Apply(Held{Worker(0), kDrained});

  h.Apply(StopSignal{});
  h.Exit(kChief, 75);

  CHECK(h.Ended() == 75);
}

}  // namespace
}  // namespace lockstep::supervisor
