#include "chief/server/watchdog.h"

#include <catch2/catch.hpp>

#include "common/sync/queue.h"

namespace lockstep::chief {
namespace {

TEST_CASE("watchdog: its thread reports a hang once, and ends at once when it is not needed", "[server]") {
  BoundedQueue<absl::Duration> reported(2);
  {
    const Watchdog idle([] { return absl::ZeroDuration(); }, [&](absl::Duration stands) { reported.Push(stands); });
  }
  CHECK(reported.size() == 0);

  const Watchdog watchdog([] { return absl::Minutes(1); }, [&](absl::Duration stands) { reported.Push(stands); },
                          StallCheck(absl::Milliseconds(1), absl::Milliseconds(5)));

  CHECK(reported.Pop() == absl::Minutes(1));
}

}  // namespace
}  // namespace lockstep::chief
