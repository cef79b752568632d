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

// The member whose state is at least as new as the newest checkpoint; null: a generation of these restores.
const Worker* SourceAmong(const std::vector<Worker*>& members, const History& history, const CheckpointTracker& saves);

// Of a generation of `members`, in rank order: who sends its state and who receives it, or what is restored, and where
// all stand then. The lineage and the members are the caller's to fill in.
Form BeginningOf(const std::vector<Worker*>& members, const History& history, const CheckpointTracker& saves,
                 const TrainingPolicy& training);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_BEGINNING_H_
