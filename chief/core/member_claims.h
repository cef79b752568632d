// The members of a generation, as Hellos name them (common/protocol/member_list.h): the lowest ranks send the list, all
// send its digest. Keeps one copy of each list and matches lists and digests in whatever order they come.
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

  // Records what the worker's Hello claims. Returns the workers of `roster` that had named this list by its digest
  // alone and have it from now on.
  std::vector<Worker*> Take(const Hello& hello, Worker& worker, const Roster& roster);
  // Records that `workers` run `generation` with `members`, which this chief knows itself. Later workers may name the
  // list by its digest, even if none of `workers` is connected then.
  void Give(const Generation& generation, const std::vector<Member>& members, const std::vector<Worker*>& workers);

 private:
  // The list with this digest; null if no connected worker named it.
  List Find(const Digest& digest) const;
  List Add(const Digest& digest, const std::vector<Member>& members);

  std::map<Digest, std::weak_ptr<const std::vector<Member>>> lists_;  // owned by the workers that claim them
  List given_;                                                        // the newest list that this chief knew itself
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_MEMBER_CLAIMS_H_
