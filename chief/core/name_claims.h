// Two processes that ask for one name on one host. The newcomer is the successor of a process that died, whose end has
// not been heard yet, or a second one beside a process that lives: a live worker is never sent away for it.
//
//   1 waits ──the holder is gone──────────────────────────────▶ 2 granted
//       │ ────its supervisor saw it end, silent since─────────▶ 3 granted, and the holder is lost
//       └ ────the holder was heard so long after the claim────▶ 4 gets another name
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_NAME_CLAIMS_H_
#define LOCKSTEP_CHIEF_CORE_NAME_CLAIMS_H_

#include <map>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/departures.h"
#include "chief/core/events.h"
#include "chief/core/limits.h"
#include "chief/core/roster.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

class NameClaims {
 public:
  // The holder of a name is alive when it is heard so long after another process asked for the name: a message from
  // before its death would have arrived earlier.
  static constexpr absl::Duration kHeldFor = absl::Milliseconds(600);

  struct Claim {
    WorkerFence fence;
    Hello hello;  // prefers the name
    absl::Time since;
  };
  enum class Verdict : uint8_t { kWaits, kGranted, kHolderIsDead, kHolderLives };

  // This session asks for a name that another one has. The same process on a new session goes on waiting. False: too
  // many wait.
  bool Add(SessionId session, const WorkerFence& fence, const Hello& hello, absl::Time now);
  void Close(SessionId session) { claims_.erase(session); }
  // Those that wait, in the order of their sessions.
  std::vector<SessionId> Sessions() const;
  // REQUIRES: it waits.
  Verdict Judge(SessionId session, Roster& roster, const Departures& gone) const;
  const Claim& Of(SessionId session) const { return claims_.at(session); }
  // It waits no more.
  Claim Take(SessionId session);
  void ShiftDeadlines(absl::Duration gap) {
    for (auto& [session, claim] : claims_) claim.since += gap;
  }

 private:
  std::map<SessionId, Claim> claims_;  // one for each process
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_NAME_CLAIMS_H_
