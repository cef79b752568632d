// Decides what happens while no worker steps (rules 3, 6, 9, 11, 12, 14, 18, 21): which team forms the next generation
// and from which state, or what has to be saved first.
//
//   the last step is held, or an ending is pending ──▶ save the held state if it is not stored ──▶ finish
//   a connection test is pending, or the pause after a break runs ──▶ wait
//   below the minimum ──▶ park
//   a state is held only by workers that cannot join ──▶ save it
//   a member holds the newest state ──▶ form from it
//   else, once nobody may hold or publish anything newer and awaited workers are here ──▶ form from the checkpoint
//
// Threading: thread-compatible (a function of its arguments; it counts failed restores and ends pauses in
// GenerationLife, and parks in Gathering).
#ifndef LOCKSTEP_CHIEF_CORE_WAITING_STEP_H_
#define LOCKSTEP_CHIEF_CORE_WAITING_STEP_H_

#include <cstdint>
#include <string>

#include "chief/core/checkpoint_tracker.h"
#include "chief/core/core_context.h"
#include "chief/core/gathering.h"
#include "chief/core/generation_life.h"
#include "chief/core/job_end.h"
#include "chief/core/team_choice.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

struct WaitingStep {
  enum class Kind : uint8_t {
    kWait,     // for the next event or Tick
    kSave,     // the state at `position`, held by workers at rest
    kFinish,   // nothing is left to save
    kGiveUp,   // the minimum of workers did not come, and nothing is left to save
    kDamaged,  // the checkpoint cannot be restored
    kForm,     // a generation of `team`
  };
  Kind kind = Kind::kWait;
  Team team;
  Position position;
  std::string reason;  // of kSave and kDamaged
};

WaitingStep NextWaitingStep(const CoreContext& context, GenerationLife& life, Gathering& gathering,
                            const TeamChoice& teams, const CheckpointTracker& saves, const JobEnd& end);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_WAITING_STEP_H_
