// How long the next generation is put off, and for whom.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

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

TEST_CASE("waiting: when all have left after a save, those that come next begin soon", "[core]") {
  const uint32_t expected = GENERATE(2u, ChiefHarness::kNotTold);
  ChiefHarness chief({.workers = 2, .expected = expected});
  if (expected != 2) chief.Advance(absl::Seconds(4));
  chief.StepTo(10);
  for (const int leaver : {0, 1}) {
    chief.worker(leaver).leaving = true;
    chief.Say(leaver, LeaveIntent{absl::Seconds(25)});
  }
  chief.MeetAtBoundary();
  REQUIRE(chief.View().published_step == 10);
  REQUIRE(chief.View().workers.empty());
  chief.Advance(absl::Seconds(3));

  chief.Connect(2);
  chief.Connect(3);
  chief.Advance(absl::Seconds(5));

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(2).members.size() == 2);
  CHECK(chief.worker(2).position == Position{10, 0});
}

// ---- why workers that are all here do not step

TEST_CASE("waiting: a pause between generations is told with its cause, and nobody else is awaited", "[core]") {
  ChiefHarness chief({.workers = 0, .expected = ChiefHarness::kNotTold});
  chief.on_form = [&chief](int index) {
    chief.Say(index, PeerFailed{chief.worker(index).generation, {}, true, "connection reset"});
    return true;
  };
  chief.Connect(0);
  chief.Connect(1);

  chief.Advance(absl::Seconds(20));

  REQUIRE(chief.phase() == Phase::kWaiting);
  CHECK_THAT(chief.View().waiting_for, Contains("the next generation, in ") &&
                                           Contains("in a row ended before a step") && Contains("connection reset") &&
                                           !Contains("--expected-workers"));
}

TEST_CASE("waiting: a worker that pauses and a pair in doubt are told with the cause", "[core]") {
  ChiefHarness chief({.workers = 2, .min = 2});
  chief.StepTo(5);
  const Generation generation = chief.worker(1).generation;

  SECTION("a worker that could not do its part") {
    chief.Say(1, PeerFailed{generation, chief.worker(1).id, true, "cannot listen"});
    CHECK_THAT(chief.View().waiting_for, Contains("worker-1, which pauses because it could not do its part") &&
                                             Contains("cannot listen") && Contains("2/2 joined"));
  }
  SECTION("a pair") {
    chief.worker(0).tests = chief.worker(1).tests = false;
    chief.Say(1, PeerFailed{generation, chief.worker(0).id, false, "rank 0 cannot be reached"});
    CHECK_THAT(chief.View().waiting_for, Contains("a test whether worker-1 reaches worker-0") &&
                                             Contains("rank 0 cannot be reached") && Contains("2/2 joined"));
  }
  CHECK(chief.phase() == Phase::kWaiting);
}

TEST_CASE("waiting: while a generation forms, its members are awaited", "[core]") {
  ChiefHarness chief({.workers = 0, .expected = 2});
  chief.on_form = [](int index) { return index == 1; };
  chief.Connect(0);
  chief.Connect(1);

  REQUIRE(chief.phase() == Phase::kForming);
  CHECK_THAT(chief.View().waiting_for, Contains("1/2 members synchronised") && !Contains("stopping"));
}

}  // namespace
}  // namespace lockstep::chief
