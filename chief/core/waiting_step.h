// What happens while nobody steps (rules 3, 6, 9, 11, 12, 14, 18, 21): who forms the next generation and from what, or
// what has to be saved first.
//
//   at the end, or one is pending ──▶ save what is held and not stored ──▶ finish
//   a test decides, or a break is a moment ago ──▶ wait
//   below the minimum ──▶ park        what only workers hold that cannot join is saved first
//   a member holds the newest state ──▶ form from it
//   else, once nobody may hold or publish anything newer, and those that come are here ──▶ form from the checkpoint
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
    kWait,     // for what an event or a Tick brings
    kSave,     // the state at `position`, from those at rest
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
