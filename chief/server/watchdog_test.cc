#include "chief/server/watchdog.h"

#include <catch2/catch.hpp>

#include "common/sync/queue.h"

namespace lockstep::chief {
namespace {

// Asks `check` every second for `time`, of a loop that turned last at `turned`. The first instant at which it hangs.
absl::Time WatchFor(WatchdogCheck& check, absl::Time begin, absl::Duration time, absl::Time turned) {
  for (absl::Time now = begin; now < begin + time; now += WatchdogCheck::kEvery) {
    if (check.Hangs(now, now - turned)) return now;
  }
  return absl::InfiniteFuture();
}

TEST_CASE("watchdog: a loop that stands is found within ten seconds", "[server]") {
  WatchdogCheck check;
  const absl::Time begin = absl::FromUnixSeconds(1000);
  for (int i = 0; i < 100; ++i) REQUIRE_FALSE(check.Hangs(begin + i * WatchdogCheck::kEvery, absl::Milliseconds(500)));

  const absl::Time turned = begin + absl::Seconds(100);

  CHECK(WatchFor(check, turned, absl::Minutes(1), turned) <= turned + absl::Seconds(10));
}

TEST_CASE("watchdog: a process that was stopped has time to turn its loop again", "[server]") {
  WatchdogCheck check;
  const absl::Time begin = absl::FromUnixSeconds(1000);
  REQUIRE(WatchFor(check, begin, absl::Seconds(20), absl::InfiniteFuture()) == absl::InfiniteFuture());

  const absl::Time woken = begin + absl::Minutes(5);

  CHECK(WatchFor(check, woken, absl::Seconds(7), begin) == absl::InfiniteFuture());
  CHECK(WatchFor(check, woken + absl::Seconds(7), absl::Seconds(7), begin) < absl::InfiniteFuture());
}

TEST_CASE("watchdog: its thread reports a hang once, and ends at once when it is not needed", "[server]") {
  BoundedQueue<absl::Duration> reported(2);
  {
    const Watchdog idle([] { return absl::ZeroDuration(); }, [&](absl::Duration stands) { reported.Push(stands); });
  }
  CHECK(reported.size() == 0);

  const Watchdog watchdog([] { return absl::Minutes(1); }, [&](absl::Duration stands) { reported.Push(stands); },
                          WatchdogCheck(absl::Milliseconds(1), absl::Milliseconds(5)));

  CHECK(reported.Pop() == absl::Minutes(1));
}

}  // namespace
}  // namespace lockstep::chief
