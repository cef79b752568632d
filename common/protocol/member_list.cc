#include "common/protocol/member_list.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"

namespace lockstep {

Digest DigestOfMembers(const Generation& generation, const std::vector<Member>& members) {
  Sha256 hash;
  hash.Update(absl::StrCat(generation.ToString(), " ", members.size()));
  for (const Member& member : members) hash.Update(absl::StrCat(" ", member.incarnation.ToString()));
  return ToHex(hash.Finish());
}

void NameMembers(const std::vector<Member>& members, const Incarnation& self, Hello& hello) {
  if (members.empty()) return;
  hello.members_digest = DigestOfMembers(hello.generation, members);
  const size_t naming = std::min(members.size(), kNamingRanks);
  for (size_t rank = 0; rank < naming; ++rank) {
    if (members[rank].incarnation == self) hello.members = members;
  }
}

}  // namespace lockstep
