// How a Hello names the members of the generation that a worker runs. The list is as long as the generation is large,
// and every member of it comes back to a new chief: so only the lowest ranks send it, and all send its digest. A
// generation goes on only when all its members are back, those ranks among them, so the list is there when it counts.
// Several send it, so that the chief hears of the others also where the first one has left the generation.
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

// Covers the generation and the incarnations in rank order. What a member is called and where it is reached may be
// other in its next session.
Digest DigestOfMembers(const Generation& generation, const std::vector<Member>& members);

// Puts what `self` says of the members of hello.generation into its Hello: nothing when there are none.
void NameMembers(const std::vector<Member>& members, const Incarnation& self, Hello& hello);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_MEMBER_LIST_H_
