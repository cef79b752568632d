#include "chief/core/running_claims.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"
#include "chief/core/member_claims.h"

namespace lockstep::chief {
namespace {

// Two workers that say they step together in a generation of the chief before.
struct Pair : CoreFixture {
  Pair() {
    for (int index = 0; index < 2; ++index) Add(index);
    for (int index = 0; index < 2; ++index) Claim(index, {worker(0).member, worker(1).member});
  }
  void Claim(int index, const std::vector<Member>& members) {
    Worker& claimant = worker(index);
    claimant.busy = Generation{1, 3};
    lists.Give(claimant.busy, members, {&claimant});
    claimant.claimed = HeldState{"lineage", {40, 0}, ""};
  }

  MemberClaims lists;
};

TEST_CASE("running claims: complete when all that are named say the same", "[core]") {
  Pair pair;
  CHECK(ClaimComplete(pair.Now(), pair.worker(0), "lineage"));

  SECTION("one of them is not here") { pair.Remove(1); }
  SECTION("one runs another generation") { pair.worker(1).busy = Generation{1, 4}; }
  SECTION("one names others") { pair.Claim(1, {pair.worker(1).member}); }
  SECTION("one has no state") { pair.worker(1).claimed.reset(); }
  SECTION("one has a state of another lineage") { pair.worker(1).claimed->lineage = "other"; }
  SECTION("a repair gave their lineage up") { pair.job_lineage = "lineage~2"; }

  CHECK_FALSE(ClaimComplete(pair.Now(), pair.worker(0), "lineage"));
}

TEST_CASE("running claims: under lineages of generations one from before the checkpoint is another life", "[core]") {
  Pair pair;
  pair.policy.lineage_per_generation = true;
  for (int index = 0; index < 2; ++index) pair.worker(index).claimed->lineage = LineageOf("lineage", Generation{1, 3});

  CHECK(ClaimComplete(pair.Now(), pair.worker(0), LineageOf("lineage", Generation{1, 2})));
  CHECK_FALSE(ClaimComplete(pair.Now(), pair.worker(0), LineageOf("lineage", Generation{1, 4})));
}

TEST_CASE("running claims: impossible once all are here and one runs it no more", "[core]") {
  Pair pair;
  CHECK_FALSE(ClaimImpossible(pair.Now(), pair.worker(0)));

  pair.worker(1).verdict_sent = true;
  CHECK(ClaimImpossible(pair.Now(), pair.worker(0)));

  pair.Remove(1);  // it may come back, and hold more than the others
  CHECK_FALSE(ClaimImpossible(pair.Now(), pair.worker(0)));
}

}  // namespace
}  // namespace lockstep::chief
