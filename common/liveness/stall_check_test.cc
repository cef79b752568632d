#include "common/liveness/stall_check.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

// Asks `check` every second for `time`, of something that turned last at `turned`. The first instant at which it
// stands.
absl::Time WatchFor(StallCheck& check, absl::Time begin, absl::Duration time, absl::Time turned) {
  for (absl::Time now = begin; now < begin + time; now += StallCheck::kEvery) {
    if (check.HasStalled(now, now - turned)) return now;
  }
  return absl::InfiniteFuture();
}

TEST_CASE("stall check: what stands is found within ten seconds", "[liveness]") {
  StallCheck check;
  const absl::Time begin = absl::FromUnixSeconds(1000);
  for (int i = 0; i < 100; ++i)
    REQUIRE_FALSE(check.HasStalled(begin + i * StallCheck::kEvery, absl::Milliseconds(500)));

  const absl::Time turned = begin + absl::Seconds(100);

  CHECK(WatchFor(check, turned, absl::Minutes(1), turned) <= turned + absl::Seconds(10));
}

TEST_CASE("stall check: after a pause of its own everybody has the whole limit again", "[liveness]") {
  StallCheck check;
  const absl::Time begin = absl::FromUnixSeconds(1000);
  REQUIRE(WatchFor(check, begin, absl::Seconds(20), absl::InfiniteFuture()) == absl::InfiniteFuture());

  const absl::Time woken = begin + absl::Minutes(5);

  CHECK(WatchFor(check, woken, absl::Seconds(7), begin) == absl::InfiniteFuture());
  CHECK(WatchFor(check, woken + absl::Seconds(7), absl::Seconds(7), begin) < absl::InfiniteFuture());
}

TEST_CASE("stall check: a pause before the first call is one as well", "[liveness]") {
  StallCheck check;
  const absl::Time begin = absl::FromUnixSeconds(1000);

  CHECK(WatchFor(check, begin + absl::Minutes(1), absl::Seconds(7), begin) == absl::InfiniteFuture());
  CHECK(WatchFor(check, begin + absl::Minutes(1) + absl::Seconds(7), absl::Seconds(3), begin) < absl::InfiniteFuture());
}

}  // namespace
}  // namespace lockstep
