#include "tests/simulation/explore.h"

#include <catch2/catch.hpp>

namespace lockstep::simulation {
namespace {

void CheckNothingFailed(const Explored& explored) {
  for (const std::string& failure : explored.failures) FAIL_CHECK(failure);
}

TEST_CASE("explore: a job of four steps ends right wherever one process is killed", "[simulation]") {
  const Explored explored = Explore({.kills = 1, .late = 0});

  CheckNothingFailed(explored);
  CHECK(explored.exhausted);
  CHECK(explored.distinct > 100);
}

TEST_CASE("explore: a job of four steps ends right whichever message is late", "[simulation]") {
  const Explored explored = Explore({.kills = 0, .late = 1});

  CheckNothingFailed(explored);
  CHECK(explored.exhausted);
  CHECK(explored.distinct > 50);
}

TEST_CASE("explore: a counted part of two kills, and of a kill and a late message, ends right", "[simulation]") {
  const Explored two = Explore({.kills = 2, .late = 0, .stride = 7, .most_runs = 3000});
  const Explored both = Explore({.kills = 1, .late = 1, .stride = 7, .most_runs = 3000});

  CheckNothingFailed(two);
  CheckNothingFailed(both);
  CHECK(two.distinct > 100);
  CHECK(both.distinct > 100);
}

}  // namespace
}  // namespace lockstep::simulation
