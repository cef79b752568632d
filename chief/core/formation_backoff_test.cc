#include "chief/core/formation_backoff.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lockstep::chief {
namespace {

const absl::Time kBroken = absl::FromUnixSeconds(1000);

TEST_CASE("formation backoff: none after the first fruitless generation, then doubling up to the longest", "[core]") {
  FormationBackoff backoff;

  std::vector<absl::Duration> pauses;
  for (int i = 0; i < 40; ++i) {
    backoff.Concluded(/*fruitless=*/true, kBroken);
    pauses.push_back(backoff.Pauses(kBroken) ? backoff.until() - kBroken : absl::ZeroDuration());
  }

  CHECK(pauses[0] == absl::ZeroDuration());
  CHECK(pauses[1] == FormationBackoff::kFirst);
  CHECK(pauses[2] == 2 * FormationBackoff::kFirst);
  CHECK(pauses[39] == FormationBackoff::kLongest);
  CHECK(backoff.fruitless() == 40);
}

TEST_CASE("formation backoff: a step, or a loss, begins anew", "[core]") {
  FormationBackoff backoff;
  for (int i = 0; i < 5; ++i) backoff.Concluded(true, kBroken);

  backoff.Concluded(false, kBroken);
  backoff.Concluded(true, kBroken + absl::Minutes(1));

  CHECK_FALSE(backoff.Pauses(kBroken + absl::Minutes(1)));
}

TEST_CASE("formation backoff: a name ends one pause between two steps", "[core]") {
  FormationBackoff backoff;
  const auto pause = [&] {
    for (int i = 0; i < 3; ++i) backoff.Concluded(true, kBroken);
    REQUIRE(backoff.Pauses(kBroken));
  };

  pause();
  CHECK(backoff.EndEarly("worker-1", kBroken));
  CHECK_FALSE(backoff.Pauses(kBroken));
  CHECK_FALSE(backoff.EndEarly("worker-2", kBroken));  // there is none to end
  pause();
  CHECK_FALSE(backoff.EndEarly("worker-1", kBroken));
  CHECK(backoff.EndEarly("worker-2", kBroken));
  backoff.Concluded(false, kBroken);
  pause();

  CHECK(backoff.EndEarly("worker-1", kBroken));
}

TEST_CASE("formation backoff: a pause of the chief's own lengthens it by as much", "[core]") {
  FormationBackoff backoff;
  for (int i = 0; i < 2; ++i) backoff.Concluded(true, kBroken);

  backoff.ShiftDeadlines(absl::Minutes(5));

  CHECK(backoff.until() == kBroken + absl::Minutes(5) + FormationBackoff::kFirst);
}

}  // namespace
}  // namespace lockstep::chief
