#include "chief/core/job_end.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

// Nobody steps; step 10 of 100 is published.
struct Ends : CoreFixture {
  Ends() {
    Add(0);
    policy.training.end_step = 100;
    policy.training.chief_timeout = absl::Seconds(60);
    policy.heartbeat_limit = absl::Seconds(5);
    recovered.checkpoint = SnapshotId{"lineage", 10, "ten"};
    life.Begin(now, term, policy);
    life.AdvanceAdopting(TickAfter(absl::Minutes(1)), "lineage");
    life.AdvanceBreaking(Now(), 0);
  }
  std::optional<JobEnd::Ending> Reached(uint64_t agreed = 10) {
    return end.Reached(Now(), life, CheckpointTracker(recovered), gone, agreed);
  }
  void Finish() { end.Finish(Now(), {0, "done"}, life, CheckpointTracker(recovered), gone); }

  RecoveredState recovered;
  GenerationLife life;
  Departures gone;
  JobEnd end;
};

TEST_CASE("job end: the last step, published and evaluated, ends the job", "[core]") {
  Ends test;
  CHECK_FALSE(test.Reached().has_value());
  test.recovered.checkpoint.step = 100;
  test.recovered.evaluated = false;
  CHECK_FALSE(test.Reached().has_value());
  test.recovered.evaluated = true;
  REQUIRE(test.Reached().has_value());
  CHECK(test.Reached()->code == 0);
}

TEST_CASE("job end: the first ending counts", "[core]") {
  Ends test;
  CHECK(test.end.Stop({75, "a signal"}));
  CHECK_FALSE(test.end.Stop({0, "the time limit"}));
  REQUIRE(test.Reached().has_value());
  CHECK(test.Reached()->code == 75);
  CHECK_THAT(test.Reached()->reason, Contains("a signal; step 10 is published"));
}

TEST_CASE("job end: a stop does not wait for lost workers that cannot hold anything new", "[core]") {
  Ends test;
  test.end.Stop({70, "too many failures"});
  test.gone.Went(test.Id(5), "worker-5", WorkerChange::kLost, true, test.now);
  for (int i = 0; i < 4; ++i) {
    CHECK_FALSE(test.Reached(11).has_value());
    test.TickAfter(test.policy.heartbeat_limit / 4);
    test.gone.Went(test.Id(6 + i), "worker-6", WorkerChange::kLost, false, test.now);
  }
  CHECK(test.end
            .Reached(test.TickAfter(absl::ZeroDuration()), test.life, CheckpointTracker(test.recovered), test.gone, 11)
            .has_value());
}

TEST_CASE("job end: a stop waits for what is held, or may be held, beyond the checkpoint", "[core]") {
  Ends test;
  test.end.Stop({75, "a signal"});
  SECTION("held at rest") { test.Hold(0, 11); }
  SECTION("by a worker that may step") { test.worker(0).busy = Generation{2, 9}; }
  SECTION("by a worker that lost its session a moment ago") {
    test.gone.Went(test.Id(5), "worker-5", WorkerChange::kLost, true, test.now);
    CHECK_FALSE(test.Reached(/*agreed=*/12).has_value());
    test.now += absl::Seconds(5);
    CHECK(
        test.end
            .Reached(test.TickAfter(absl::ZeroDuration()), test.life, CheckpointTracker(test.recovered), test.gone, 12)
            .has_value());
    return;
  }
  CHECK_FALSE(test.Reached().has_value());
}

TEST_CASE("job end: the last boundary is published first", "[core]") {
  Ends test;
  test.end.Stop({0, "stop"});
  test.life.EnterFinishing(20);
  CHECK_FALSE(test.Reached().has_value());
  test.recovered.checkpoint.step = 20;
  CHECK(test.Reached().has_value());
}

TEST_CASE("job end: the chief goes when all have heard", "[core]") {
  Ends test;
  test.term = 1;
  test.Finish();
  CHECK(test.TakeCommands<Done>().size() == 1);
  CHECK_FALSE(test.end.MayExit(test.Now(), test.life, test.gone));

  test.Remove(0);
  test.gone.SaidGoodbye(test.Id(0), "worker-0");
  CHECK(test.end.MayExit(test.Now(), test.life, test.gone));
}

TEST_CASE("job end: a later chief does not know the members, and waits a moment; nobody is waited for long", "[core]") {
  Ends test;
  test.Finish();
  test.Remove(0);
  SECTION("a moment") {
    test.gone.SaidGoodbye(test.Id(0), "worker-0");
    CHECK_FALSE(test.end.MayExit(test.Now(), test.life, test.gone));
    CHECK(test.end.MayExit(test.TickAfter(absl::Seconds(5)), test.life, test.gone));
  }
  SECTION("a worker that never answers") {
    CHECK_FALSE(test.end.MayExit(test.TickAfter(absl::Seconds(59)), test.life, test.gone));
    test.end.ShiftDeadlines(absl::Seconds(1));
    CHECK_FALSE(test.end.MayExit(test.TickAfter(absl::Seconds(1)), test.life, test.gone));
    CHECK(test.end.MayExit(test.TickAfter(absl::Seconds(61)), test.life, test.gone));
  }
}

}  // namespace
}  // namespace lockstep::chief
