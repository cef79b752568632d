// What a generation begins from (rules 9, 14, 18): the newest state that a member holds at rest, else the newest
// checkpoint.
//
// Threading: thread-compatible (a pure function).
#ifndef LOCKSTEP_CHIEF_CORE_BEGINNING_H_
#define LOCKSTEP_CHIEF_CORE_BEGINNING_H_

#include <vector>

#include "chief/core/checkpoint_tracker.h"
#include "chief/core/history.h"
#include "chief/core/policy.h"
#include "chief/core/roster.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

// The member whose state the others receive: one at least as new as the newest checkpoint. Null if such a generation
// restores.
const Worker* SourceAmong(const std::vector<Worker*>& members, const History& history, const CheckpointTracker& saves);

// The beginning of a generation of `members` (in rank order): which members send and receive states, or which
// checkpoint is restored, and the position at which all then stand. The caller fills in the lineage and the members.
Form BeginningOf(const std::vector<Worker*>& members, const History& history, const CheckpointTracker& saves,
                 const TrainingPolicy& training);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_BEGINNING_H_
