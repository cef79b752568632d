// The members of a generation as Hellos name them (common/protocol/member_list.h): the lowest ranks by a list, all by
// its digest. Keeps one copy of each list, and brings lists and digests together in whatever order they come.
//
// Threading: thread-compatible; owned by GenerationLife.
#ifndef LOCKSTEP_CHIEF_CORE_MEMBER_CLAIMS_H_
#define LOCKSTEP_CHIEF_CORE_MEMBER_CLAIMS_H_

#include <map>
#include <memory>
#include <vector>

#include "chief/core/roster.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

class MemberClaims {
 public:
  using List = std::shared_ptr<const std::vector<Member>>;

  // The worker claims what its Hello says. Returns those of `roster` whose list this is: they had named it by its
  // digest alone, and have it now.
  std::vector<Worker*> Take(const Hello& hello, Worker& worker, const Roster& roster);
  // The workers claim to run `generation` with `members`, as this chief knows itself: others that come may name them
  // by their digest, also when none of these is here.
  void Give(const Generation& generation, const std::vector<Member>& members, const std::vector<Worker*>& workers);

 private:
  // The list of this digest; null when nobody who is here named it.
  List Find(const Digest& digest) const;
  List Add(const Digest& digest, const std::vector<Member>& members);

  std::map<Digest, std::weak_ptr<const std::vector<Member>>> lists_;  // workers hold them
  List given_;                                                        // the newest one that this chief knows itself
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_MEMBER_CLAIMS_H_
