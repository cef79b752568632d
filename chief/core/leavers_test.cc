#include "chief/core/leavers.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

// Nobody steps; step 10 is published.
struct Resting : CoreFixture {
  Resting() {
    for (int index = 0; index < 3; ++index) Add(index);
    recovered.checkpoint = SnapshotId{"lineage", 10, "ten"};
    life.Begin(now, term, policy);
    life.AdvanceAdopting(TickAfter(absl::Minutes(1)), "lineage");
    life.AdvanceBreaking(Now(), 0);
  }
  CheckpointTracker Saves() const { return CheckpointTracker(recovered); }
  bool LastCopy(int index) { return LastCopyLeaves(Now(), life, Saves(), worker(index)); }
  bool MayHold(int index) { return MayHoldNewer(Now(), life, Saves(), worker(index)); }
  LeaverStep Next(int index, int best) {
    const std::optional<HeldState>& held = worker(best).held;
    return NextStepOf(Now(), life, Saves(), worker(index), held ? std::optional(held->position) : std::nullopt);
  }

  RecoveredState recovered;
  GenerationLife life;
};

TEST_CASE("leavers: the last copy of what is not saved does not go unsaved", "[core]") {
  Resting test;
  test.worker(0).leaving = true;
  test.Hold(0, 20);
  CHECK(test.LastCopy(0));
  CHECK(test.Next(0, 0) == LeaverStep::kIsSaved);

  SECTION("another one that stays holds as much") { test.Hold(1, 20); }
  SECTION("it is saved") { test.recovered.checkpoint.step = 20; }
  SECTION("it is of another lineage") { test.worker(0).held->lineage = "other"; }

  CHECK_FALSE(test.LastCopy(0));
  CHECK(test.Next(0, 0) == LeaverStep::kGoes);
}

TEST_CASE("leavers: another leaver's copy is none that stays, and the newest of them is saved", "[core]") {
  Resting test;
  test.worker(0).leaving = test.worker(1).leaving = true;
  test.Hold(0, 20);
  test.Hold(1, 21);
  CHECK(test.Next(1, 1) == LeaverStep::kIsSaved);
  CHECK(test.Next(0, 1) == LeaverStep::kWaits);
}

TEST_CASE("leavers: nobody goes while it steps, or while what others hold is not known", "[core]") {
  Resting test;
  test.worker(0).busy = Generation{2, 1};
  CHECK(test.Next(0, 0) == LeaverStep::kWaits);
  test.worker(0).busy = Generation();
  CHECK(test.Next(0, 0) == LeaverStep::kGoes);

  GenerationLife listens;
  listens.Begin(test.now, test.term, test.policy);
  CHECK(NextStepOf(test.Now(), listens, test.Saves(), test.worker(0), std::nullopt) == LeaverStep::kWaits);
}

TEST_CASE("leavers: a member may hold any state; a worker of a discarded or another lineage holds none that counts",
          "[core]") {
  Resting test;
  CHECK_FALSE(test.MayHold(0));
  test.Hold(0, 11);
  CHECK(test.MayHold(0));
  test.worker(0).dismissed = true;
  CHECK_FALSE(test.MayHold(0));

  test.worker(1).busy = Generation{2, 1};
  CHECK(test.MayHold(1));
  test.worker(1).claimed = HeldState{"other", {30, 0}, ""};
  CHECK_FALSE(test.MayHold(1));
  test.worker(1).claimed.reset();
  test.life.GiveUp(Generation{2, 1});
  test.life.Part();
  CHECK_FALSE(test.MayHold(1));
}

TEST_CASE("leavers: everybody at rest at the position is asked once for a snapshot", "[core]") {
  Resting test;
  test.Hold(0, 20);
  test.Hold(1, 20);
  test.Hold(2, 19);
  test.worker(1).stage = Worker::Stage::kPreparing;  // its replica is being built anew

  SaveAtRest(test.Now(), test.Saves(), {20, 0}, "why");
  CHECK(test.TakeCommands<TakeSnapshot>().size() == 1);
  SaveAtRest(test.Now(), test.Saves(), {20, 0}, "why");
  CHECK(test.TakeCommands<TakeSnapshot>().empty());
  test.worker(1).stage = Worker::Stage::kReady;
  SaveAtRest(test.Now(), test.Saves(), {20, 0}, "why");
  CHECK(test.TakeCommands<TakeSnapshot>().size() == 1);
}

}  // namespace
}  // namespace lockstep::chief
