#include "chief/core/handover.h"

#include "chief/core/leavers.h"

namespace lockstep::chief {

bool Handover::NeedsSave(const CheckpointTracker& saves, uint64_t agreed) {
  if (!step_.has_value()) step_ = agreed;
  return saves.IsNewer(*step_);
}

bool Handover::MayGo(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                     const Departures& gone, uint64_t agreed) {
  for (const Worker* worker : context.roster.InOrder()) {
    if (worker->leaving) return false;
  }
  if (life.Is(Phase::kRunning)) return !NeedsSave(saves, agreed);
  return life.Is(Phase::kWaiting) && AllIsSaved(context, life, saves, gone, agreed);
}

}  // namespace lockstep::chief
