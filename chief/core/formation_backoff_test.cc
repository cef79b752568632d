#include "chief/core/formation_backoff.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lockstep::chief {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST_CASE("formation backoff: none after the first fruitless generation, then doubling up to the longest", "[core]") {
  FormationBackoff backoff;

  std::vector<absl::Duration> pauses;
  for (int i = 0; i < 40; ++i) {
    backoff.Concluded(/*fruitless=*/true, kNow);
    pauses.push_back(backoff.Pauses(kNow) ? backoff.until() - kNow : absl::ZeroDuration());
  }

  CHECK(pauses[0] == absl::ZeroDuration());
  CHECK(pauses[1] == FormationBackoff::kFirst);
  CHECK(pauses[2] == 2 * FormationBackoff::kFirst);
  CHECK(pauses[39] == FormationBackoff::kLongest);
  CHECK(backoff.fruitless() == 40);
}

TEST_CASE("formation backoff: a step, or a loss, begins anew", "[core]") {
  FormationBackoff backoff;
  for (int i = 0; i < 5; ++i) backoff.Concluded(true, kNow);

  backoff.Concluded(false, kNow);
  backoff.Concluded(true, kNow + absl::Minutes(1));

  CHECK_FALSE(backoff.Pauses(kNow + absl::Minutes(1)));
}

TEST_CASE("formation backoff: a name ends one pause between two steps", "[core]") {
  FormationBackoff backoff;
  const auto pause = [&] {
    for (int i = 0; i < 3; ++i) backoff.Concluded(true, kNow);
    REQUIRE(backoff.Pauses(kNow));
  };

  pause();
  CHECK(backoff.EndEarly("worker-1", kNow));
  CHECK_FALSE(backoff.Pauses(kNow));
  CHECK_FALSE(backoff.EndEarly("worker-2", kNow));  // there is none to end
  pause();
  CHECK_FALSE(backoff.EndEarly("worker-1", kNow));
  CHECK(backoff.EndEarly("worker-2", kNow));
  backoff.Concluded(false, kNow);
  pause();

  CHECK(backoff.EndEarly("worker-1", kNow));
}

TEST_CASE("formation backoff: a pause of the chief's own lengthens it by as much", "[core]") {
  FormationBackoff backoff;
  for (int i = 0; i < 2; ++i) backoff.Concluded(true, kNow);

  backoff.ShiftDeadlines(absl::Minutes(5));

  CHECK(backoff.until() == kNow + absl::Minutes(5) + FormationBackoff::kFirst);
}

}  // namespace
}  // namespace lockstep::chief
