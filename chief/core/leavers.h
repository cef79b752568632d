// Who may go, and what is saved at rest before it does (rules 6 and 21): what nobody else holds does not leave unsaved.
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

// Whether what this worker holds at rest is newer than the newest checkpoint, and nobody who stays holds as much.
bool LastCopyLeaves(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                    const Worker& leaver);
// Whether this worker holds, or may turn out to hold, more than the newest checkpoint.
bool MayHoldNewer(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                  const Worker& worker);

// Nobody steps: whether no worker holds, or may come back with, more than the newest checkpoint. A worker that lost its
// session comes back within seconds; others that come and go, as where a host crashes them all, keep nobody waiting.
bool AllIsSaved(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                const Departures& gone, uint64_t agreed);

enum class LeaverStep : uint8_t { kWaits, kIsSaved, kGoes };
// What is next for a leaver that was not dismissed. `newest_leaver`: where the one at rest that holds most leaves too,
// that is saved and settles the others, since a grace may be short; its position, or none.
LeaverStep NextStepOf(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                      const Worker& leaver, const std::optional<Position>& newest_leaver);

// Asks everybody at rest at `position` for a snapshot, once.
void SaveAtRest(const CoreContext& context, const CheckpointTracker& saves, const Position& position,
                const std::string& reason);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_LEAVERS_H_
