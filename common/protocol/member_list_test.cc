#include "common/protocol/member_list.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("member list: the digest tells generations, members and their order apart, and nothing else", "[protocol]") {
  const Member one{{1, 2}, "worker-0", "a:1"};
  const Member other{{1, 3}, "worker-1", "b:1"};
  const Digest digest = DigestOfMembers({1, 4}, {one, other});

  CHECK(digest.size() == 64);
  CHECK(DigestOfMembers({1, 4}, {Member{{1, 2}, "another name", "elsewhere:2"}, other}) == digest);
  CHECK(DigestOfMembers({1, 5}, {one, other}) != digest);
  CHECK(DigestOfMembers({1, 4}, {other, one}) != digest);
  CHECK(DigestOfMembers({1, 4}, {one}) != digest);
  CHECK(DigestOfMembers({1, 4}, {one, Member{{3, 1}, "worker-1", "b:1"}}) != digest);
}

TEST_CASE("member list: the lowest ranks send it, all others its digest alone", "[protocol]") {
  std::vector<Member> members;
  for (uint64_t rank = 0; rank < 5; ++rank) members.push_back(Member{{9, rank}, "w", "a"});

  for (uint64_t rank = 0; rank < 5; ++rank) {
    CAPTURE(rank);
    Hello hello;
    hello.generation = {1, 4};
    NameMembers(members, {9, rank}, hello);
    CHECK(hello.members.size() == (rank < kNamingRanks ? members.size() : 0));
    CHECK(hello.members_digest == DigestOfMembers({1, 4}, members));
  }
}

}  // namespace
}  // namespace lockstep
