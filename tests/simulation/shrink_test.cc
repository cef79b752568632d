#include "tests/simulation/shrink.h"

#include <catch2/catch.hpp>
#include <set>

namespace lockstep::simulation {
namespace {

// A schedule of 20 faults that fails where all of `guilty` strike.
Runner FailsBy(std::set<size_t> guilty) {
  return [guilty](const ScenarioOptions& options) {
    ScenarioResult result;
    result.planned.resize(20, "a fault");
    for (const size_t fault : guilty) {
      if (options.only.has_value() && options.only->count(fault) == 0) return result;
    }
    result.violations.push_back("step 12 is lost");
    return result;
  };
}

TEST_CASE("shrink: what is left are the faults that it takes", "[simulation]") {
  const Shrunk shrunk = Shrink({}, 1000, FailsBy({3, 4, 17}));

  CHECK(shrunk.options.only == std::set<size_t>{3, 4, 17});
  CHECK(shrunk.result.violations.size() == 1);
}

TEST_CASE("shrink: another failure is not the one that is looked for", "[simulation]") {
  const Runner two_ways = [](const ScenarioOptions& options) {
    ScenarioResult result = FailsBy({5})(options);
    if (result.violations.empty()) result.violations.push_back("the job does not end");
    return result;
  };

  CHECK(Shrink({}, 1000, two_ways).options.only == std::set<size_t>{5});
}

TEST_CASE("shrink: a schedule that passes comes back whole", "[simulation]") {
  const Runner passes = [](const ScenarioOptions&) { return ScenarioResult(); };

  const Shrunk shrunk = Shrink({}, 1000, passes);

  CHECK(shrunk.runs == 1);
  CHECK_FALSE(shrunk.options.only.has_value());
}

TEST_CASE("shrink: violations of one kind differ in numbers only", "[simulation]") {
  CHECK(KindOfViolation("worker-1: step 12 is lost") == KindOfViolation("worker-20: step 7 is lost"));
  CHECK(KindOfViolation("step 12 is lost") != KindOfViolation("step 12 is late"));
}

}  // namespace
}  // namespace lockstep::simulation
