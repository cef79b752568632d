#include "common/clock/clock.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("clock: the steady one begins at today's date and never goes backwards", "[clock]") {
  SteadyClock clock;
  absl::Time last = clock.Now();
  CHECK(last > absl::FromCivil(absl::CivilDay(2020, 1, 1), absl::UTCTimeZone()));
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = clock.Now();
    REQUIRE(now >= last);
    last = now;
  }
}

TEST_CASE("clock: the manual one moves by what it is told", "[clock]") {
  ManualClock clock(absl::UnixEpoch());
  clock.Advance(absl::Seconds(3));
  CHECK(clock.Now() == absl::UnixEpoch() + absl::Seconds(3));
}

}  // namespace
}  // namespace lockstep
