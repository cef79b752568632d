#include "chief/core/break_finding.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

struct Three : CoreFixture {
  Three() {
    for (int index = 0; index < 3; ++index) Add(index);
  }
};

TEST_CASE("break finding: what both of a pair say of each other is one suspicion", "[core]") {
  Three three;

  const BreakFinding finding =
      Weigh({{three.Id(2), three.Id(1), false}, {three.Id(1), three.Id(2), true}}, three.roster, false, true);

  REQUIRE(finding.suspicions.size() == 1);
  CHECK(finding.suspicions[0].one == three.Id(1));
  CHECK(finding.suspicions[0].other == three.Id(2));
  CHECK(finding.suspicions[0].while_forming);
  CHECK_FALSE(finding.all_in_doubt);
}

TEST_CASE("break finding: a death explains what others say, not what a member says of itself", "[core]") {
  Three three;

  const BreakFinding finding =
      Weigh({{three.Id(0), three.Id(1), true}, {three.Id(2), three.Id(2), true}}, three.roster, true, false);

  REQUIRE(finding.suspicions.size() == 1);
  CHECK(finding.suspicions[0].one == three.Id(2));
  CHECK(finding.suspicions[0].other == three.Id(2));
}

TEST_CASE("break finding: whoever is gone is no suspect and no witness", "[core]") {
  Three three;
  three.Remove(0);
  CHECK(Weigh({{three.Id(0), three.Id(1), true}, {three.Id(1), three.Id(0), true}}, three.roster, false, true)
            .suspicions.empty());
}

TEST_CASE("break finding: all are in doubt only where nothing else explains that it did not form", "[core]") {
  Three three;
  CHECK(Weigh({}, three.roster, false, false).all_in_doubt);
  CHECK_FALSE(Weigh({}, three.roster, true, false).all_in_doubt);
  CHECK_FALSE(Weigh({}, three.roster, false, true).all_in_doubt);
  CHECK_FALSE(Weigh({{three.Id(0), three.Id(1), true}}, three.roster, false, false).all_in_doubt);
}

}  // namespace
}  // namespace lockstep::chief
