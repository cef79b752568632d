#include "chief/core/gathering.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

struct Cold : CoreFixture {
  Cold() {
    gathering.LastCall(now + absl::Seconds(30));
    gathering.Came(now);
    team.staying = team.present = 2;
  }
  bool Awaits(const CoreContext& context) { return gathering.AwaitsMore(context, life, team); }

  GenerationLife life;
  Gathering gathering;
  Team team;
};

TEST_CASE("gathering: as many as are expected are waited for, as long as the last call", "[core]") {
  Cold cold;
  cold.policy.expected_workers = 3;
  CHECK(cold.Awaits(cold.TickAfter(absl::Seconds(29))));
  CHECK_FALSE(cold.Awaits(cold.TickAfter(absl::Seconds(1))));

  cold.team.staying = 3;
  CHECK_FALSE(cold.Awaits(cold.Now()));
}

TEST_CASE("gathering: where nobody said how many, a quiet moment ends the wait, in a tick alone", "[core]") {
  Cold cold;
  cold.now += Gathering::kQuiet;
  CHECK(cold.Awaits(cold.Now()));
  CHECK_FALSE(cold.Awaits(cold.TickAfter(absl::ZeroDuration())));

  cold.Add(0).stage = Worker::Stage::kPreparing;  // it is coming
  CHECK(cold.Awaits(cold.TickAfter(absl::ZeroDuration())));
}

TEST_CASE("gathering: who is known not to reach the others is not waited for once a generation was formed", "[core]") {
  Cold cold;
  cold.policy.expected_workers = 3;
  cold.team.present = 3;
  CHECK(cold.Awaits(cold.Now()));

  cold.life.SendForm(cold.Now(), lockstep::Form(), {&cold.Add(0)}, 0);
  CHECK_FALSE(cold.Awaits(cold.Now()));
}

TEST_CASE("gathering: a parked job is patient, and begins anew after it had enough", "[core]") {
  Cold cold;
  cold.policy.wait_for_min = absl::Minutes(10);
  CHECK_FALSE(cold.gathering.Park(cold.Now()));
  CHECK_FALSE(cold.gathering.Park(cold.TickAfter(absl::Minutes(9))));
  cold.gathering.ShiftDeadlines(absl::Minutes(1));  // this process was paused
  CHECK_FALSE(cold.gathering.Park(cold.TickAfter(absl::Minutes(1))));
  CHECK(cold.gathering.Park(cold.TickAfter(absl::Minutes(1))));

  cold.gathering.EndPark();
  CHECK_FALSE(cold.gathering.Park(cold.TickAfter(absl::Minutes(1))));
}

TEST_CASE("gathering: the next deadline is the quiet moment's or the last call's", "[core]") {
  Cold cold;
  CHECK(cold.gathering.NextDeadline(cold.now, cold.policy) == cold.now + Gathering::kQuiet);
  CHECK(cold.gathering.NextDeadline(cold.now + Gathering::kQuiet, cold.policy) == cold.now + absl::Seconds(30));
  cold.policy.expected_workers = 2;
  CHECK(cold.gathering.NextDeadline(cold.now, cold.policy) == cold.now + absl::Seconds(30));
  CHECK(cold.gathering.NextDeadline(cold.now + absl::Seconds(30), cold.policy) == absl::InfiniteFuture());
}

}  // namespace
}  // namespace lockstep::chief
