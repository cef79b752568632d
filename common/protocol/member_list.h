// How a Hello names the members of the generation that a worker runs. The list is as long as the generation is large,
// and every member comes back to a new chief, so only the lowest ranks send the list and all send its digest. A
// generation goes on only when all its members are back, and then the list is known. More than one rank sends it, so
// that the chief learns the other members even if the first one has left the generation.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_MEMBER_LIST_H_
#define LOCKSTEP_COMMON_PROTOCOL_MEMBER_LIST_H_

#include <cstddef>
#include <vector>

#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep {

// Ranks below this one send the list.
inline constexpr size_t kNamingRanks = 3;

// Covers the generation and the incarnations in rank order. Names and addresses are left out: they may differ in a
// member's next session.
Digest DigestOfMembers(const Generation& generation, const std::vector<Member>& members);

// Fills the member fields of the Hello that `self` sends about hello.generation; leaves them empty when `members` is
// empty.
void NameMembers(const std::vector<Member>& members, const Incarnation& self, Hello& hello);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_MEMBER_LIST_H_
