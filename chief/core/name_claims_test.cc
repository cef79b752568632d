#include "chief/core/name_claims.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

using Claim = NameClaims::Verdict;

// Worker 0 has its name; a process on session 9 asks for it.
struct Asked : CoreFixture {
  Asked() {
    Add(0);
    hello.preferred_name = "worker-0";
    CHECK(claims.Add(9, WorkerFence{"", 0, Id(7)}, hello, now));
  }
  Claim Judge() { return claims.Judge(9, roster, gone); }

  Hello hello;
  Departures gone;
  NameClaims claims;
};

TEST_CASE("name claims: a claim waits while nobody knows whether the holder lives", "[core]") {
  Asked asked;
  CHECK(asked.Judge() == Claim::kWaits);
  asked.worker(0).heard = asked.now + NameClaims::kHeldFor - absl::Milliseconds(1);
  CHECK(asked.Judge() == Claim::kWaits);
}

TEST_CASE("name claims: a holder that is heard for long enough lives", "[core]") {
  Asked asked;
  asked.worker(0).heard = asked.now + NameClaims::kHeldFor;
  CHECK(asked.Judge() == Claim::kHolderLives);
}

TEST_CASE("name claims: a holder whose process was seen to end is dead, unless it was heard since", "[core]") {
  Asked asked;
  asked.gone.Exited("worker-0", asked.Id(0), asked.now + absl::Seconds(1));
  CHECK(asked.Judge() == Claim::kHolderIsDead);
  asked.worker(0).heard = asked.now + absl::Seconds(1);
  CHECK(asked.Judge() == Claim::kHolderLives);
}

TEST_CASE("name claims: a holder that is gone leaves its name", "[core]") {
  Asked asked;
  asked.Remove(0);
  CHECK(asked.Judge() == Claim::kGranted);
  CHECK(asked.claims.Take(9).hello.preferred_name == "worker-0");
  CHECK(asked.claims.Sessions().empty());
}

TEST_CASE("name claims: the same process on a new session has waited since its first", "[core]") {
  Asked asked;
  asked.claims.Add(12, WorkerFence{"", 0, asked.Id(7)}, asked.hello, asked.now + absl::Seconds(1));
  CHECK(asked.claims.Sessions() == std::vector<SessionId>{12});
  CHECK(asked.claims.Of(12).since == asked.now);

  asked.claims.ShiftDeadlines(absl::Seconds(3));
  CHECK(asked.claims.Of(12).since == asked.now + absl::Seconds(3));
  asked.claims.Close(12);
  CHECK(asked.claims.Sessions().empty());
}

}  // namespace
}  // namespace lockstep::chief
