#include "chief/core/reachability.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

const Incarnation kA{1, 1};
const Incarnation kB{1, 2};
const Incarnation kC{1, 3};
const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST_CASE("reachability: pairs that have met wait for nothing", "[core]") {
  Reachability pairs;
  CHECK(pairs.NextDeadline(kNow) == absl::InfiniteFuture());
  pairs.Asked(kA, kB, kNow);
  CHECK(pairs.NextDeadline(kNow) == kNow + Reachability::kPatience);

  pairs.Succeeded(kB, kA);

  CHECK(pairs.NextDeadline(kNow) == absl::InfiniteFuture());
}

TEST_CASE("reachability: the next test, the end of a doubt and the end of a pause are deadlines, while ahead",
          "[core]") {
  Reachability pairs;
  pairs.Failed(kA, kB, kNow);
  CHECK(pairs.NextDeadline(kNow) == kNow + Reachability::kRetest);
  CHECK(pairs.NextDeadline(kNow + Reachability::kRetest) == absl::InfiniteFuture());

  pairs.Suspect(kA, kC, false, kNow);
  pairs.Asked(kA, kC, kNow);
  CHECK(pairs.NextDeadline(kNow + Reachability::kRetest) == kNow + Reachability::kDoubt);

  pairs.Formed(kA, kB);
  pairs.Formed(kA, kC);
  pairs.SuspectItself(kB, kNow);
  CHECK(pairs.NextDeadline(kNow) == kNow + Reachability::Pause(1));
  pairs.Forget(kB);
  CHECK(pairs.NextDeadline(kNow) == absl::InfiniteFuture());
}

}  // namespace
}  // namespace lockstep::chief
