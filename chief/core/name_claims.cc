#include "chief/core/name_claims.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep::chief {

bool NameClaims::Add(SessionId session, const WorkerFence& fence, const Hello& hello, absl::Time now) {
  absl::Time since = now;
  std::erase_if(claims_, [&](const auto& entry) {
    if (entry.second.fence.incarnation != fence.incarnation) return false;
    since = std::min(since, entry.second.since);
    return true;
  });
  if (claims_.size() >= kMaxWorkers) return false;
  claims_[session] = Claim{fence, hello, since};
  return true;
}

std::vector<SessionId> NameClaims::Sessions() const {
  std::vector<SessionId> sessions;
  for (const auto& [session, claim] : claims_) sessions.push_back(session);
  return sessions;
}

NameClaims::Verdict NameClaims::Judge(SessionId session, Roster& roster, const Departures& gone) const {
  const Claim& claim = claims_.at(session);
  const Worker* holder = roster.ByName(claim.hello.preferred_name);
  if (holder == nullptr) return Verdict::kGranted;
  const std::optional<absl::Time> exited = gone.ExitedAt(claim.hello.preferred_name);
  if (exited.has_value() && holder->heard < *exited) return Verdict::kHolderIsDead;
  return holder->heard >= claim.since + kHeldFor ? Verdict::kHolderLives : Verdict::kWaits;
}

NameClaims::Claim NameClaims::Take(SessionId session) { return std::move(claims_.extract(session).mapped()); }

}  // namespace lockstep::chief
