#include "chief/core/training_clock.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

TEST_CASE("training clock: the time limit counts what all chiefs trained", "[core]") {
  JobPolicy policy;
  policy.max_duration = absl::Hours(2);
  TrainingClock clock(absl::Minutes(119));
  CHECK_FALSE(clock.IsTimeUp(policy));
  clock.Stepped(absl::Minutes(1));
  CHECK(clock.IsTimeUp(policy));
  clock.GoBack(absl::Minutes(30), absl::FromUnixSeconds(0));
  CHECK_FALSE(clock.IsTimeUp(policy));
}

TEST_CASE("training clock: a save is due so long after the last one, a pause of the chief not counted", "[core]") {
  const absl::Duration every = absl::Minutes(10);
  const absl::Time begin = absl::FromUnixSeconds(1000);
  TrainingClock clock(absl::ZeroDuration());
  clock.Saved(begin);
  CHECK_FALSE(clock.IsSaveDue(begin + absl::Minutes(9), every));
  CHECK(clock.IsSaveDue(begin + absl::Minutes(10), every));
  clock.ShiftDeadlines(absl::Minutes(1));
  CHECK_FALSE(clock.IsSaveDue(begin + absl::Minutes(10), every));
  CHECK(clock.IsSaveDue(begin + absl::Minutes(11), every));
}

}  // namespace
}  // namespace lockstep::chief
