#include "chief/core/member_claims.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/protocol/member_list.h"

namespace lockstep::chief {
namespace {

constexpr Generation kGeneration{1, 4};

std::vector<Member> Members() { return {{{7, 1}, "worker-0", "a:1"}, {{7, 2}, "worker-1", "b:1"}}; }

// As a member says it: with the list, or by its digest alone.
Hello Says(bool list) {
  Hello hello;
  hello.generation = kGeneration;
  hello.members_digest = DigestOfMembers(kGeneration, Members());
  if (list) hello.members = Members();
  return hello;
}

Worker& Come(Roster& roster, uint64_t number) {
  Worker worker;
  worker.member = {{7, number}, absl::StrCat("worker-", number), ""};
  worker.session = number;
  return roster.Add(std::move(worker));
}

TEST_CASE("claims: a list and its digest come together in either order, and are one", "[core]") {
  Roster roster;
  MemberClaims claims;
  Worker& early = Come(roster, 2);
  Worker& naming = Come(roster, 1);
  Worker& late = Come(roster, 3);

  CHECK(claims.Take(Says(false), early, roster).empty());
  CHECK(early.claims == nullptr);
  CHECK(claims.Take(Says(true), naming, roster) == std::vector<Worker*>{&early});
  CHECK(claims.Take(Says(false), late, roster).empty());

  REQUIRE(naming.claims != nullptr);
  CHECK(*naming.claims == Members());
  CHECK(early.claims == naming.claims);
  CHECK(late.claims == naming.claims);
}

TEST_CASE("claims: another generation, or other members, get another list", "[core]") {
  Roster roster;
  MemberClaims claims;
  Worker& naming = Come(roster, 1);
  Worker& waiting = Come(roster, 2);
  Worker& silent = Come(roster, 3);
  Hello other = Says(false);
  other.members_digest = DigestOfMembers({1, 5}, Members());
  claims.Take(other, waiting, roster);
  claims.Take(Hello(), silent, roster);

  CHECK(claims.Take(Says(true), naming, roster).empty());

  CHECK(waiting.claims == nullptr);
  CHECK(silent.claims == nullptr);
}

TEST_CASE("claims: a worker that sends a list and no digest claims that list", "[core]") {
  Roster roster;
  MemberClaims claims;
  Worker& naming = Come(roster, 1);
  Worker& other = Come(roster, 2);
  Hello hello = Says(true);
  hello.members_digest.clear();

  claims.Take(hello, naming, roster);
  claims.Take(Says(false), other, roster);

  CHECK(other.claims == naming.claims);
  CHECK(other.claim == naming.claim);
}

TEST_CASE("claims: the list that this chief knows itself lasts although nobody is here", "[core]") {
  Roster roster;
  MemberClaims claims;
  claims.Give(kGeneration, Members(), {});
  Worker& late = Come(roster, 2);

  claims.Take(Says(false), late, roster);

  REQUIRE(late.claims != nullptr);
  CHECK(*late.claims == Members());
}

TEST_CASE("claims: a list lasts as long as somebody claims it", "[core]") {
  Roster roster;
  MemberClaims claims;
  Worker& naming = Come(roster, 1);
  claims.Take(Says(true), naming, roster);
  naming.claims.reset();
  Worker& late = Come(roster, 2);

  claims.Take(Says(false), late, roster);
  CHECK(late.claims == nullptr);
  claims.Give(kGeneration, Members(), {&late});

  REQUIRE(late.claims != nullptr);
  CHECK(*late.claims == Members());
  CHECK(late.claim == Says(false).members_digest);
}

}  // namespace
}  // namespace lockstep::chief
