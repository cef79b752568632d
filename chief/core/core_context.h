// The arguments that the coordinator passes to its parts with each call: the instant of the event, the job's policy,
// the connected workers, and the outbox for actions. A part keeps none of them, so that no part depends on another or
// on the coordinator.
//
// Threading: thread-compatible; lives for one call.
#ifndef LOCKSTEP_CHIEF_CORE_CORE_CONTEXT_H_
#define LOCKSTEP_CHIEF_CORE_CORE_CONTEXT_H_

#include <algorithm>
#include <cstddef>

#include "absl/time/time.h"
#include "chief/core/history.h"
#include "chief/core/outbox.h"
#include "chief/core/policy.h"
#include "chief/core/roster.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

struct CoreContext {
  const JobPolicy& policy;
  Term term;
  absl::Time now;
  bool judging;  // the event is a Tick
  Roster& roster;
  Outbox& out;
  const History& history;
  const Lineage& job_lineage;  // without the suffix of a generation

  // Whether `limit` has passed and the event is a Tick. No other event times anything out, because an earlier message
  // may still be queued.
  bool Passed(absl::Time limit) const { return judging && now >= limit; }
};

// The most members that a generation can use.
inline size_t Capacity(const JobPolicy& policy) {
  return std::min<size_t>(policy.max_workers, policy.training.logical_shards);
}

// How long workers have to acknowledge that their generation is over: the limit of the policy plus the longest node of
// any of them, as a node that began runs to its end.
inline absl::Duration AckWindow(const CoreContext& context) {
  absl::Duration longest = absl::ZeroDuration();
  for (const Worker* worker : context.roster.InOrder()) {
    if (worker->IsReady() && !worker->AtRest()) longest = std::max(longest, worker->ready.longest_node);
  }
  return context.policy.ack_limit + longest;
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_CORE_CONTEXT_H_
