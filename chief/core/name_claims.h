// Decides between two processes that ask for one name on one host. The newcomer is either the successor of a process
// whose death was not noticed yet, or a second process beside a live one. A live worker never loses its name.
//
//   1 waits ──the holder is gone───────────────────────────────▶ 2 granted
//       ├────its supervisor saw it end, and it was silent since─▶ 3 granted, and the holder is lost
//       └────the holder was heard kHeldFor after the claim──────▶ 4 gets another name
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
  // The holder of a name is alive if it is heard this long after another process asked for the name: a message that it
  // sent before its death would have arrived earlier.
  static constexpr absl::Duration kHeldFor = absl::Milliseconds(600);

  struct Claim {
    WorkerFence fence;
    Hello hello;  // its preferred name is the contested one
    absl::Time since;
  };
  enum class Verdict : uint8_t { kWaits, kGranted, kHolderIsDead, kHolderLives };

  // This session asks for a name that another worker has. A process that reconnects keeps its place. Returns false if
  // too many claims wait.
  bool Add(SessionId session, const WorkerFence& fence, const Hello& hello, absl::Time now);
  void Close(SessionId session) { claims_.erase(session); }
  // The sessions that wait, in ascending order.
  std::vector<SessionId> Sessions() const;
  // REQUIRES: the session waits.
  Verdict Judge(SessionId session, Roster& roster, const Departures& gone) const;
  const Claim& Of(SessionId session) const { return claims_.at(session); }
  // Removes and returns the claim. REQUIRES: the session waits.
  Claim Take(SessionId session);
  void ShiftDeadlines(absl::Duration gap) {
    for (auto& [session, claim] : claims_) claim.since += gap;
  }

 private:
  std::map<SessionId, Claim> claims_;  // at most one for each process
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_NAME_CLAIMS_H_
