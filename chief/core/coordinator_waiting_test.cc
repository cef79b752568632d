// How long the next generation is put off, and for whom.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

// All die at once: none of them answers a verdict.
void KillAll(ChiefHarness& chief, int workers) {
  for (int i = 0; i < workers; ++i) chief.worker(i).mute = true;
  for (int i = 0; i < workers; ++i) chief.Kill(i);
}

TEST_CASE("waiting: when all were killed and all are back, they restore together and at once", "[core]") {
  const bool told = GENERATE(true, false);
  ChiefHarness chief({.workers = 3, .expected = told ? 3u : ChiefHarness::kNotTold});
  chief.Advance(absl::Seconds(4));
  REQUIRE(chief.worker(0).members.size() == 3);
  chief.StepTo(5);
  KillAll(chief, 3);
  const absl::Time killed = chief.now();
  chief.Forget();

  for (int i = 0; i < 3; ++i) chief.Connect(i);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.now() == killed);
  REQUIRE(chief.Commands<Form>(0).size() == 1);
  CHECK(chief.Commands<Form>(0)[0].members.size() == 3);
}

TEST_CASE("waiting: a ready worker that reaches nobody is awaited no longer", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(5);
  KillAll(chief, 3);
  chief.worker(2).unreachable = {"worker-0", "worker-1"};

  for (int i = 0; i < 3; ++i) chief.Connect(i);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).members.size() == 2);
}

TEST_CASE("waiting: a restore begins as soon as the save that it waited for is given up", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(20);
  for (const int i : {0, 1}) chief.worker(i).keeps_shares = true;
  chief.TakeSnapshots(SnapshotCause::kDue);
  const SnapshotId snapshot = chief.Last<OpenSave>().snapshot;
  for (const int i : {0, 1}) chief.worker(i).has_state = false;
  chief.Say(0, PeerFailed{chief.worker(0).generation, {}, false, "reset"});
  REQUIRE(chief.phase() == Phase::kWaiting);

  chief.Say(0, ShareFailed{snapshot, 0, 2, "reset"});
  REQUIRE(chief.phase() == Phase::kWaiting);
  chief.Say(1, ShareFailed{snapshot, 0, 2, "reset"});

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).position == Position{0, 0});
}

// ---- the next instant at which time alone changes something

// Advances to `when` in ticks of half a second and one last tick right before it.
void TickUntilJustBefore(ChiefHarness& chief, absl::Time when) {
  chief.Advance(when - chief.now() - absl::Milliseconds(100));
}

TEST_CASE("waiting: a tick is due at the end of the quiet time, of the last call and of a pause", "[core]") {
  SECTION("quiet") {
    ChiefHarness chief({.workers = 0, .expected = ChiefHarness::kNotTold});
    chief.Connect(0);
    const absl::Time due = chief.now() + Coordinator::kQuiet;
    TickUntilJustBefore(chief, due);
    CHECK(chief.NextDeadline() == due);
  }
  SECTION("last call") {
    ChiefHarness chief({.workers = 0, .expected = 2});
    const absl::Time due = chief.now() + chief.config().policy.last_call;
    chief.Connect(0);
    TickUntilJustBefore(chief, due);
    CHECK(chief.NextDeadline() == due);
  }
  SECTION("the pause of a pair") {
    ChiefHarness chief({.workers = 2});
    chief.worker(2).unreachable = {"worker-0"};
    chief.Connect(2);
    const absl::Time due = chief.now() + Reachability::kRetest;
    TickUntilJustBefore(chief, due);
    CHECK(chief.NextDeadline() == due);
  }
}

}  // namespace
}  // namespace lockstep::chief
