#include "chief/core/member_claims.h"

#include <iterator>

#include "common/protocol/member_list.h"

namespace lockstep::chief {

std::vector<Worker*> MemberClaims::Take(const Hello& hello, Worker& worker, const Roster& roster) {
  std::vector<Worker*> given;
  worker.claim = hello.members.empty() ? hello.members_digest : DigestOfMembers(hello.generation, hello.members);
  worker.claims = Find(worker.claim);
  if (worker.claims != nullptr || hello.members.empty()) return given;
  worker.claims = Add(worker.claim, hello.members);
  for (Worker* other : roster.InOrder()) {
    if (other->claims != nullptr || other->claim != worker.claim) continue;
    other->claims = worker.claims;
    given.push_back(other);
  }
  return given;
}

void MemberClaims::Give(const Generation& generation, const std::vector<Member>& members,
                        const std::vector<Worker*>& workers) {
  const Digest digest = DigestOfMembers(generation, members);
  List list = Find(digest);
  if (list == nullptr) list = Add(digest, members);
  given_ = list;
  for (Worker* worker : workers) {
    worker->claim = digest;
    worker->claims = list;
  }
}

MemberClaims::List MemberClaims::Find(const Digest& digest) const {
  const auto found = lists_.find(digest);
  return found == lists_.end() ? nullptr : found->second.lock();
}

MemberClaims::List MemberClaims::Add(const Digest& digest, const std::vector<Member>& members) {
  for (auto entry = lists_.begin(); entry != lists_.end();) {
    entry = entry->second.expired() ? lists_.erase(entry) : std::next(entry);
  }
  auto list = std::make_shared<const std::vector<Member>>(members);
  lists_[digest] = list;
  return list;
}

}  // namespace lockstep::chief
