// Decides which leaving workers may go and what is saved at rest first (rules 6 and 21): a state that no other worker
// holds does not leave unsaved.
//
//   1 leaving ──at rest, and what others hold is known──▶ 2 may go ──nobody else holds it──▶ 3 is saved ──▶ 4 dismissed
//                                                             └──────others do, or it is saved────────────▶ 4
//
// Threading: thread-compatible (pure functions; SaveAtRest marks the workers that it asks).
#ifndef LOCKSTEP_CHIEF_CORE_LEAVERS_H_
#define LOCKSTEP_CHIEF_CORE_LEAVERS_H_

#include <optional>
#include <string>

#include "chief/core/checkpoint_tracker.h"
#include "chief/core/core_context.h"
#include "chief/core/departures.h"
#include "chief/core/generation_life.h"
#include "chief/core/roster.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

// Whether the state that this worker holds at rest is newer than the newest checkpoint, and no worker that stays holds
// one as new.
bool LastCopyLeaves(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                    const Worker& leaver);
// Whether this worker holds, or may turn out to hold, a state newer than the newest checkpoint.
bool MayHoldNewer(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                  const Worker& worker);

// While no worker steps: whether none holds, or may come back with, a state newer than the newest checkpoint. A worker
// that lost its session is awaited for the heartbeat limit; workers that come and go later do not prolong the wait.
bool AllIsSaved(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                const Departures& gone, uint64_t agreed);

enum class LeaverStep : uint8_t { kWaits, kIsSaved, kGoes };
// The next step of a leaver that was not dismissed. `newest_leaver`: the position of the worker at rest that holds
// most, if it leaves too; only its state is saved, which settles the older ones, since a grace may be short.
LeaverStep NextStepOf(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                      const Worker& leaver, const std::optional<Position>& newest_leaver);

// Asks every worker at rest at `position` for a snapshot, once.
void SaveAtRest(const CoreContext& context, const CheckpointTracker& saves, const Position& position,
                const std::string& reason);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_LEAVERS_H_
