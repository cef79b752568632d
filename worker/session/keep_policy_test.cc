#include "worker/session/keep_policy.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST_CASE("keep policy: copies take at most half a percent of the time, whatever one costs", "[session]") {
  const absl::Duration cost = absl::Milliseconds(GENERATE(0, 1, 30, 700, 20000));
  const absl::Duration audit_every = absl::Milliseconds(GENERATE(5, 160, 16000));
  KeepPolicy policy;
  absl::Time now = kStart;
  absl::Duration copying;
  int copies = 0;
  absl::Time counted_from;

  // The first copy tells what one costs; from the second on the share holds.
  while (copies < 20) {
    now += audit_every;
    if (!policy.IsDue(now)) continue;
    if (++copies == 1) counted_from = now;
    if (copies > 1) copying += cost;
    policy.Took(now, cost);
    now += cost;
  }

  CHECK(copying * 200 <= now - counted_from);
}

TEST_CASE("keep policy: two copies are far enough apart that one is older than what is being looked into",
          "[session]") {
  KeepPolicy policy;
  CHECK(policy.IsDue(kStart));
  policy.Took(kStart, absl::Milliseconds(1));

  CHECK_FALSE(policy.IsDue(kStart + KeepPolicy::kApart - absl::Milliseconds(1)));
  CHECK(policy.IsDue(kStart + KeepPolicy::kApart));

  policy.Took(kStart, absl::Milliseconds(100));
  CHECK_FALSE(policy.IsDue(kStart + absl::Seconds(19)));
  CHECK(policy.IsDue(kStart + absl::Seconds(20)));
}

}  // namespace
}  // namespace lockstep::worker
