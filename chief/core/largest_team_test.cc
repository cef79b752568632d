#include "chief/core/largest_team.h"

#include <catch2/catch.hpp>
#include <set>
#include <utility>

namespace lockstep::chief {
namespace {

using Indexes = std::vector<size_t>;

Indexes TeamWithout(size_t count, const std::set<std::pair<size_t, size_t>>& cut) {
  return LargestTeam(count, [&](size_t a, size_t b) { return cut.count({a, b}) == 0 && cut.count({b, a}) == 0; });
}

TEST_CASE("largest team: everybody, where everybody reaches everybody", "[core]") {
  CHECK(TeamWithout(0, {}).empty());
  CHECK(TeamWithout(1, {}) == Indexes{0});
  CHECK(TeamWithout(40, {}).size() == 40);
}

TEST_CASE("largest team: one that reaches nobody does not keep the others apart, first or not", "[core]") {
  CHECK(TeamWithout(4, {{0, 1}, {0, 2}, {0, 3}}) == Indexes{1, 2, 3});
  CHECK(TeamWithout(4, {{2, 0}, {2, 1}, {2, 3}}) == Indexes{0, 1, 3});
}

TEST_CASE("largest team: of equally large ones the earlier members", "[core]") {
  CHECK(TeamWithout(3, {{0, 1}}) == Indexes{0, 2});
  CHECK(TeamWithout(2, {{0, 1}}) == Indexes{0});
  CHECK(TeamWithout(4, {{0, 2}, {0, 3}, {1, 2}, {1, 3}}) == Indexes{0, 1});
}

TEST_CASE("largest team: two halves of a hundred are found, whoever came first", "[core]") {
  const Indexes team = LargestTeam(100, [](size_t a, size_t b) { return (a < 40) == (b < 40); });

  CHECK(team.size() == 60);
  CHECK(team.front() == 40);
}

}  // namespace
}  // namespace lockstep::chief
