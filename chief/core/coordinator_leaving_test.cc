// Leaving (rules 4 and 21).
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

// ---- leaving (rules 4, 21)

TEST_CASE("coordinator: a leaver goes at the boundary, and the others go on without rollback", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(10);
  chief.worker(2).leaving = true;
  chief.Say(2, LeaveIntent{absl::Seconds(25)});
  CHECK(chief.worker(2).exit_code == -1);

  chief.MeetAtBoundary();

  CHECK(chief.worker(2).exit_code == 75);
  CHECK(chief.LastCommand<Form>(0).members.size() == 2);
  CHECK(chief.LastCommand<Form>(0).position == Position{10, 0});
  CHECK(chief.View().preemptions == 1);
  CHECK(chief.View().failures == 0);
}

TEST_CASE("coordinator: a leaver stays until every member applied its last step", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(10);
  chief.worker(2).leaving = true;
  chief.Say(2, LeaveIntent{absl::Seconds(25)});
  chief.Apply(2, 11);
  chief.Apply(0, 11);
  chief.ComeToBoundary(2);

  // Worker 1 has not come yet: the leaver may still be needed.
  CHECK(chief.worker(2).exit_code == -1);
  chief.Apply(1, 11);
  chief.ComeToBoundary(0);
  chief.ComeToBoundary(1);

  CHECK(chief.worker(2).exit_code == 75);
}

TEST_CASE("coordinator: a leaver that alone holds the last step takes part once more", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(10);
  chief.worker(2).leaving = true;
  chief.Say(2, LeaveIntent{absl::Seconds(25)});
  chief.worker(2).position = Position{11, 0};

  chief.Kill(0);

  const Form form = chief.LastCommand<Form>(1);
  CHECK(form.position == Position{11, 0});
  CHECK(form.members[form.source_rank].name == "worker-2");
  CHECK(chief.worker(2).exit_code == -1);
}

TEST_CASE("coordinator: the last copy does not leave before it is saved", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);
  for (int i : {0, 1}) {
    chief.worker(i).leaving = true;
    chief.Say(i, LeaveIntent{absl::Seconds(25)});
  }
  chief.storing = false;
  chief.MeetAtBoundary();
  REQUIRE(chief.Last<StoreManifest>().snapshot.step == 10);
  CHECK(chief.worker(0).exit_code == -1);
  CHECK(chief.worker(1).exit_code == -1);

  chief.Do(ManifestStored{chief.Last<StoreManifest>().snapshot, "digest-of-10"});
  chief.Do(Published{chief.Last<StoreManifest>().snapshot});

  CHECK(chief.worker(0).exit_code == 75);
  CHECK(chief.worker(1).exit_code == 75);
  CHECK_FALSE(chief.ended());
}

TEST_CASE("coordinator: a stop after every worker has left in order waits for none of them", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);
  for (int i : {0, 1}) {
    chief.worker(i).leaving = true;
    chief.Say(i, LeaveIntent{absl::Seconds(25)});
  }
  chief.MeetAtBoundary();
  REQUIRE(chief.worker(0).exit_code == 75);
  REQUIRE(chief.worker(1).exit_code == 75);

  chief.Do(StopRequested{"SIGTERM", 75});

  CHECK(chief.View().published_step == 10);
  CHECK(chief.Last<Exit>().code == 75);
}

TEST_CASE("coordinator: while the storage refuses, last copies of older steps make room for a newer one", "[core]") {
  ChiefHarness chief({.workers = 1});
  chief.storage_error = "no space left";
  // A drain that is taken back after the worker stood still, again and again.
  for (uint64_t step = 1; step <= 2 * kMaxHeldSnapshots; ++step) {
    chief.StepTo(step);
    chief.Do(DrainRequested{step, {"worker-0"}, false, absl::InfiniteDuration(), "a person"});
    chief.MeetAtBoundary();
    REQUIRE(chief.Commands<TakeSnapshot>(0).size() == step);  // asked once
    chief.Do(DrainRequested{step, {"worker-0"}, true, absl::InfiniteDuration(), "a person"});
    chief.Advance(absl::Milliseconds(500));
    REQUIRE(chief.Members().size() == 1);
  }

  chief.StepTo(50);
  chief.TakeSnapshots(SnapshotCause::kBest);

  CHECK(chief.worker(0).snapshots.count(SnapshotId{"lineage-1", 50, "digest-of-50"}) == 1);
  chief.storage_error.clear();
  chief.Advance(absl::Minutes(2));
  CHECK(chief.View().published_step == 50);
}

TEST_CASE("coordinator: a last copy that was dropped just as it was asked for is asked for anew", "[core]") {
  ChiefHarness chief({.workers = 1});
  chief.StepTo(10);
  FakeWorker& w = chief.worker(0);
  w.leaving = w.keeps_shares = true;
  chief.Say(0, LeaveIntent{absl::Seconds(25)});
  chief.MeetAtBoundary();
  REQUIRE(chief.Commands<TakeSnapshot>(0).size() == 1);
  const AskShare ask = chief.LastCommand<AskShare>(0);

  w.snapshots.clear();
  w.keeps_shares = false;
  chief.Say(0, ShareFailed{ask.snapshot, ask.share, ask.shares, "this snapshot is not held here", /*gone=*/true});

  CHECK(chief.Commands<TakeSnapshot>(0).size() == 2);
  CHECK(chief.View().published_step == 10);
  CHECK(w.exit_code == 75);
}

TEST_CASE("coordinator: a worker outside a generation leaves at once", "[core]") {
  ChiefHarness chief({.workers = 1, .min = 2, .max = 2});

  chief.worker(0).leaving = true;
  chief.Say(0, LeaveIntent{absl::Seconds(25)});

  CHECK(chief.worker(0).exit_code == 75);
}

// ---- the end

TEST_CASE("coordinator: a spare whose session was cut at the end is waited for a moment, and hears Done", "[core]") {
  ChiefHarness chief({.workers = 2, .end_step = 50, .logical_shards = 1});
  REQUIRE(chief.Members() == std::vector<int>{0});
  chief.StepTo(49);
  SECTION("it comes back") {
    chief.Reset(1);
    chief.StepTo(50);
    REQUIRE(chief.worker(0).exit_code == 0);
    chief.Advance(absl::Seconds(1));
    REQUIRE_FALSE(chief.ended());
    chief.Connect(1);
    CHECK(chief.worker(1).exit_code == 0);
    CHECK(chief.ended());
  }
  SECTION("it does not") {
    chief.Reset(1);
    chief.StepTo(50);
    chief.Advance(absl::Seconds(1));
    CHECK_FALSE(chief.ended());
    chief.Advance(chief.config().policy.heartbeat_limit);
    CHECK(chief.ended());
  }
  SECTION("its process was seen to end, before or after its session") {
    const bool before = GENERATE(false, true);
    if (before) chief.Do(ProcessExited{"worker-1", 9, 0});
    chief.Reset(1);
    if (!before) chief.Do(ProcessExited{"worker-1", 9, 0});
    chief.StepTo(50);
    CHECK(chief.ended());
  }
  SECTION("it left in order") {
    chief.Say(1, Left{0, "told to"});
    chief.StepTo(50);
    CHECK(chief.ended());
  }
  SECTION("another process took its place") {
    chief.Kill(1);
    chief.Connect(1);
    chief.StepTo(50);
    CHECK(chief.worker(1).exit_code == 0);
    CHECK(chief.ended());
  }
  SECTION("it was lost so long ago that it has given up") {
    chief.Reset(1);
    chief.Advance(chief.config().policy.training.chief_timeout + absl::Seconds(1));
    chief.StepTo(50);
    CHECK(chief.ended());
  }
  CHECK(chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: a worker that cannot prepare again is refused once what it alone holds is saved", "[core]") {
  ChiefHarness chief({.min = 1, .term = 2, .plan = "plan-1"});
  FakeWorker& holder = chief.worker(0);
  holder.has_state = true;
  holder.lineage = "lineage-1";
  holder.position = Position{30, 0};
  holder.ready.plan_hash = "another plan";
  holder.can_run = false;

  chief.Connect(0);
  chief.Advance(absl::Seconds(10));

  CHECK(chief.Last<PublishCommit>().snapshot.step == 30);
  CHECK(chief.LastCommand<Refused>(0).exit_code == 78);
  CHECK_THAT(chief.LastCommand<Refused>(0).message, Contains("no AVX-512 here"));
}

TEST_CASE("coordinator: a worker that cannot prepare again is refused at once where others hold what it holds",
          "[core]") {
  ChiefHarness chief({.min = 1, .term = 2, .plan = "plan-1"});
  for (const int i : {0, 1}) {
    FakeWorker& holder = chief.worker(i);
    holder.has_state = true;
    holder.lineage = "lineage-1";
    holder.position = Position{30, 0};
    if (i == 0) continue;
    holder.ready.plan_hash = "another plan";
    holder.can_run = false;
  }

  for (const int i : {0, 1}) chief.Connect(i);
  chief.Advance(absl::Seconds(10));

  CHECK(chief.LastCommand<Refused>(1).exit_code == 78);
  CHECK(chief.Count<PublishCommit>() == 0);
  CHECK(chief.LastCommand<Form>(0).position == Position{30, 0});
}

}  // namespace
}  // namespace lockstep::chief
