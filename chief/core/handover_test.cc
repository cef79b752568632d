// A chief that goes and leaves its workers to the next one.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

const StopRequested kGo{"SIGTERM", 75, /*hands_over=*/true};

bool ToldToEnd(ChiefHarness& chief, int index) {
  return !chief.Commands<Done>(index).empty() || !chief.Commands<Shutdown>(index).empty() ||
         !chief.Commands<Dismiss>(index).empty();
}

TEST_CASE("handover: what is agreed on is saved, then the chief goes and the members step on", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);
  chief.Do(kGo);
  CHECK_FALSE(chief.ended());
  REQUIRE(chief.LastCommand<BoundaryRequest>(0).kind == RequestKind::kSnapshot);
  chief.StepTo(12);

  chief.TakeSnapshots(SnapshotCause::kDue);

  CHECK(chief.View().published_step == 12);
  CHECK(chief.Last<Exit>().code == 75);
  CHECK(chief.Last<Exit>().handed_over);
  CHECK_THAT(chief.Last<Exit>().reason, Contains("step 12 is published") && Contains("next chief"));
  for (int i : {0, 1}) {
    CHECK_FALSE(ToldToEnd(chief, i));
    CHECK(chief.worker(i).connected);
    CHECK_FALSE(chief.worker(i).generation.IsNone());
  }
}

TEST_CASE("handover: a chief goes at once where nothing newer than its checkpoint is agreed on", "[core]") {
  ChiefHarness stepping({.workers = 2});
  stepping.Do(kGo);
  CHECK(stepping.Last<Exit>().handed_over);
  CHECK_FALSE(ToldToEnd(stepping, 0));

  ChiefHarness alone({.min = 2});
  alone.Do(kGo);
  CHECK(alone.Last<Exit>().code == 75);
}

TEST_CASE("handover: a save of an older step does not count", "[core]") {
  ChiefHarness chief({.workers = 1});
  chief.StepTo(10);
  chief.storing = false;
  chief.TakeSnapshots(SnapshotCause::kDue);
  chief.StepTo(20);
  chief.Do(kGo);
  const SnapshotId older = chief.Last<StoreManifest>().snapshot;
  REQUIRE(older.step == 10);

  chief.storing = true;
  chief.Do(ManifestStored{older, older.digest});
  CHECK_FALSE(chief.ended());
  chief.TakeSnapshots(SnapshotCause::kDue);

  CHECK(chief.View().published_step == 20);
  CHECK(chief.Last<Exit>().handed_over);
}

TEST_CASE("handover: a chief whose storage refuses stays until that takes what is agreed on", "[core]") {
  ChiefHarness chief({.workers = 1});
  chief.StepTo(10);
  chief.storage_error = "no space left";
  chief.Do(kGo);
  chief.TakeSnapshots(SnapshotCause::kDue);
  const size_t asked = chief.Commands<BoundaryRequest>(0).size();
  chief.Advance(absl::Milliseconds(500));
  CHECK_FALSE(chief.ended());
  CHECK(chief.Commands<BoundaryRequest>(0).size() == asked);  // not again and again

  chief.storage_error.clear();
  chief.Advance(absl::Seconds(12));
  chief.TakeSnapshots(SnapshotCause::kDue);

  CHECK(chief.View().published_step == 10);
  CHECK(chief.Last<Exit>().handed_over);
}

TEST_CASE("handover: workers at rest are saved as they are, and no generation is formed any more", "[core]") {
  ChiefHarness chief({.workers = 2, .min = 2});
  chief.StepTo(10);
  chief.Kill(1);
  REQUIRE(chief.phase() == Phase::kWaiting);
  chief.storing = false;
  chief.Do(kGo);
  REQUIRE(chief.Last<StoreManifest>().snapshot.step == 10);
  chief.Connect(1);
  chief.Advance(absl::Seconds(1));
  CHECK(chief.Members().empty());

  chief.Do(ManifestStored{chief.Last<StoreManifest>().snapshot, "digest-of-10"});
  chief.Do(Published{chief.Last<StoreManifest>().snapshot});
  chief.Advance(absl::Seconds(10));  // the one that was lost might have come back with more

  CHECK(chief.Last<Exit>().handed_over);
  CHECK_FALSE(ToldToEnd(chief, 0));
}

TEST_CASE("handover: workers that leave at the same time are served first", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);
  for (int i : {0, 1}) {
    chief.worker(i).leaving = true;
    chief.Say(i, LeaveIntent{absl::Seconds(25)});
  }
  chief.Do(kGo);
  chief.StepTo(11);
  chief.TakeSnapshots(SnapshotCause::kDue);
  CHECK_FALSE(chief.ended());

  chief.StepTo(12);
  chief.MeetAtBoundary();
  chief.Advance(absl::Seconds(1));

  CHECK(chief.View().published_step == 12);
  CHECK(chief.worker(0).exit_code == 75);
  CHECK(chief.worker(1).exit_code == 75);
  CHECK(chief.Last<Exit>().handed_over);
}

TEST_CASE("handover: a stop counts more, before it and after it", "[core]") {
  for (const bool stop_first : {true, false}) {
    CAPTURE(stop_first);
    ChiefHarness chief({.workers = 1});
    chief.StepTo(10);
    const StopRequested stop{"user", 0};
    chief.Do(stop_first ? stop : kGo);
    chief.Do(stop_first ? kGo : stop);

    chief.TakeSnapshots(SnapshotCause::kStop);
    chief.Advance(absl::Seconds(1));

    CHECK(chief.worker(0).exit_code == 0);
    CHECK_FALSE(chief.Last<Exit>().handed_over);
  }
}

TEST_CASE("handover: a job that is done while its chief is to go ends as done", "[core]") {
  ChiefHarness chief({.workers = 1, .end_step = 20});
  chief.StepTo(10);
  chief.Do(kGo);

  chief.StepTo(20);
  chief.Advance(absl::Seconds(1));

  CHECK(chief.worker(0).exit_code == 0);
  CHECK(chief.Last<Exit>().code == 0);
}

}  // namespace
}  // namespace lockstep::chief
