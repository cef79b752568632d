#include "tests/simulation/oracle.h"

#include <catch2/catch.hpp>

namespace lockstep::simulation {
namespace {

const Lineage kBefore = "lineage";
const Lineage kAfter = "lineage~1";

Oracle::Seat SeatOf(uint32_t rank) { return {Generation{1, 1}, rank, 2}; }

// The state of this step, and a bit that is wrong.
ReplicaState Wrong(const Oracle& oracle, int64_t step, uint64_t bit) {
  ReplicaState state = oracle.reference().at(step);
  state.weights[0] ^= bit;
  return state;
}

TEST_CASE("oracle: the job may go back to a wrong state only where every member was hit and came to hold it",
          "[simulation]") {
  Oracle oracle(TinyJob{}, TrainingPolicy{});
  const ReplicaState wrong = Wrong(oracle, 23, 1);
  const bool both_hit = GENERATE(false, true);
  const bool alike = GENERATE(false, true);
  oracle.Flipped(SeatOf(0), kBefore, 16);
  if (both_hit) oracle.Flipped(SeatOf(1), kBefore, 16);
  oracle.Digested(SeatOf(0), kBefore, wrong);
  oracle.Digested(SeatOf(1), kBefore, alike ? wrong : Wrong(oracle, 23, 2));

  oracle.WentBack(kBefore, kAfter, wrong);

  CHECK(oracle.AllHitAlike(kBefore) == (both_hit && alike));
  CHECK(oracle.AllHitAlike(kAfter) == (both_hit && alike));
  CHECK(oracle.violated() != (both_hit && alike));
}

TEST_CASE("oracle: that one state could not be known to be wrong excuses no other state", "[simulation]") {
  Oracle oracle(TinyJob{}, TrainingPolicy{});
  for (const uint32_t rank : {0, 1}) {
    oracle.Flipped(SeatOf(rank), kBefore, 16);
    oracle.Digested(SeatOf(rank), kBefore, Wrong(oracle, 23, 1));
  }

  oracle.WentBack(kBefore, kAfter, Wrong(oracle, 32, 2));

  CHECK(oracle.violated());
}

TEST_CASE("oracle: members that were hit outvote the others only where they hold one wrong state", "[simulation]") {
  Oracle oracle(TinyJob{}, TrainingPolicy{});
  const bool alike = GENERATE(false, true);
  for (const uint32_t rank : {0, 1}) {
    oracle.Flipped({Generation{1, 1}, rank, 3}, kBefore, 16);
    oracle.Digested({Generation{1, 1}, rank, 3}, kBefore, Wrong(oracle, 32, alike ? 1 : 1 + rank));
  }
  oracle.Digested({Generation{1, 1}, 2, 3}, kBefore, oracle.reference().at(32));

  CHECK(oracle.SomeHitAlike(32) == alike);
  CHECK_FALSE(oracle.SomeHitAlike(16));
  CHECK_FALSE(oracle.AllHitAlike(kBefore));
}

}  // namespace
}  // namespace lockstep::simulation
