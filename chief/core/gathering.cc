#include "chief/core/gathering.h"

#include <cstddef>
#include <cstdint>

namespace lockstep::chief {

bool Gathering::AwaitsMore(const CoreContext& context, const GenerationLife& life, const Team& team) const {
  const JobPolicy& policy = context.policy;
  if (context.Passed(last_call_until_)) return false;
  // Once a generation was formed, who is here and cannot join it is not about to.
  const uint32_t here = life.HasFormed() ? team.present : team.staying;
  if (policy.expected_workers != 0) return here < policy.expected_workers;
  // As many as stepped together last are all that can be counted on.
  const GenerationLife::Current& last = life.current();
  const size_t enough = last.id.IsNone() ? policy.max_workers : last.members.size();
  if (here >= std::min<size_t>(enough, policy.max_workers)) return false;
  for (const Worker* worker : context.roster.InOrder()) {
    if (!worker->IsReady() && worker->AtRest() && !worker->leaving) return true;
  }
  return !context.Passed(last_came_ + kQuiet);
}

absl::Time Gathering::NextDeadline(absl::Time now, const JobPolicy& policy) const {
  absl::Time next = absl::InfiniteFuture();
  if (last_call_until_ > now) next = last_call_until_;
  const absl::Time quiet = last_came_ + kQuiet;
  if (policy.expected_workers == 0 && quiet > now) next = std::min(next, quiet);
  return next;
}

}  // namespace lockstep::chief
