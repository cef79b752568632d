// Two processes that ask for one name on one host. The newcomer is the successor of a process that died, whose end has
// not been heard yet, or a second one beside a process that lives: a live worker is never sent away for it. A holder
// that was silent since its supervisor saw its process end is dead.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "chief/core/coordinator.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

void Coordinator::AwaitName(SessionId session, const WorkerFence& fence, const Hello& hello) {
  absl::Time since = now_;
  for (auto claim = name_claims_.begin(); claim != name_claims_.end();) {
    // The same process on a new session goes on waiting.
    if (claim->second.fence.incarnation == fence.incarnation) {
      since = std::min(since, claim->second.since);
      claim = name_claims_.erase(claim);
    } else {
      ++claim;
    }
  }
  if (name_claims_.size() >= kMaxWorkers) return Refuse(session, kExitBadJob, "too many workers ask for taken names");
  name_claims_[session] = NameClaim{fence, hello, since};
}

void Coordinator::ServeNames() {
  for (auto next = name_claims_.begin(); next != name_claims_.end() && !life_.Is(Phase::kEnded);) {
    NameClaim claim = next->second;
    const SessionId session = next->first;
    const Worker* holder = roster_.ByName(claim.hello.preferred_name);
    const std::optional<absl::Time> exited = gone_.ExitedAt(claim.hello.preferred_name);
    if (holder != nullptr && exited.has_value() && holder->heard < *exited) {
      Lose(holder->id(), WorkerChange::kLost, "its supervisor saw its process end", /*close=*/true);
      holder = nullptr;
    }
    const bool lives = holder != nullptr && holder->heard >= claim.since + kNameHeldFor;
    if (holder != nullptr && !lives) {
      ++next;
      continue;
    }
    next = name_claims_.erase(next);
    if (lives) {
      out_.Say(Level::kWarning,
               absl::StrCat("another process on ", claim.hello.host, " asks for the name ", holder->name(),
                            ", which a worker has that is alive: it gets another one"));
      claim.hello.preferred_name.clear();
    }
    OnHello(session, claim.fence, claim.hello);
  }
}

}  // namespace lockstep::chief
