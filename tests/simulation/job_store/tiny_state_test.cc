#include "tests/simulation/job_store/tiny_state.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace lockstep::simulation {
namespace {

TEST_CASE("tiny state: a replica's bytes give the replica again, and no others do", "[simulation]") {
  const ReplicaState state{7, {1, 2, 3}};
  std::vector<std::string> bytes = BytesOf(state);

  CHECK(StateOf(7, bytes) == state);

  bytes.back().back() ^= 1;
  CHECK_FALSE(StateOf(7, bytes).has_value());
}

TEST_CASE("tiny state: each of the integers is in the digest", "[simulation]") {
  const std::string digest = DigestsOf({7, {1, 2, 3}}).state;

  CHECK(digest.size() == 64);
  CHECK(DigestsOf({7, {0, 2, 3}}).state != digest);
  CHECK(DigestsOf({7, {1, 0, 3}}).state != digest);
  CHECK(DigestsOf({7, {1, 2, 0}}).state != digest);
}

}  // namespace
}  // namespace lockstep::simulation
