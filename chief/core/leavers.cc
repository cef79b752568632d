#include "chief/core/leavers.h"

#include "chief/core/states_at_rest.h"

namespace lockstep::chief {
namespace {

bool MayGo(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
           const Worker& leaver) {
  if (life.Is(Phase::kAdopting) || life.Is(Phase::kBreaking)) return false;  // what others hold is not known yet
  if (!life.Is(Phase::kFinishing) || !leaver.finished) return leaver.AtRest();
  for (const Worker* other : context.roster.InOrder()) {
    if (!other->leaving && saves.Holds(other->id(), life.final_step())) return true;
  }
  return false;
}

}  // namespace

bool LastCopyLeaves(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                    const Worker& leaver) {
  if (!HoldsCurrent(context.history, leaver) || !saves.IsNewer(leaver.held->position.step)) return false;
  if (life.Is(Phase::kForming) || life.Is(Phase::kRunning)) return life.current().begin < leaver.held->position;
  for (const Worker* other : context.roster.InOrder()) {
    if (other->leaving) continue;
    if (HoldsCurrent(context.history, *other) && other->held->position >= leaver.held->position) return false;
  }
  return true;
}

bool MayHoldNewer(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                  const Worker& worker) {
  if (worker.AtRest()) {
    return HoldsCurrent(context.history, worker) && !worker.dismissed && saves.IsNewer(worker.held->position.step);
  }
  // What generations before a repair computed counts no more.
  const bool foreign = worker.claimed.has_value() && JobLineage(worker.claimed->lineage) != context.job_lineage;
  return !life.IsParted(worker.busy) && !foreign;
}

bool AllIsSaved(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                const Departures& gone, uint64_t agreed) {
  const absl::Time back_by = gone.holder_lost() + context.policy.heartbeat_limit;
  if (saves.IsNewer(agreed) && !context.Passed(back_by)) return false;
  for (const Worker* worker : context.roster.InOrder()) {
    if (MayHoldNewer(context, life, saves, *worker)) return false;
  }
  return true;
}

LeaverStep NextStepOf(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                      const Worker& leaver, const std::optional<Position>& newest_leaver) {
  if (!MayGo(context, life, saves, leaver)) return LeaverStep::kWaits;
  if (life.Is(Phase::kFinishing) || !LastCopyLeaves(context, life, saves, leaver)) return LeaverStep::kGoes;
  const bool newer_leaves = newest_leaver.has_value() && *newest_leaver > leaver.held->position;
  return newer_leaves ? LeaverStep::kWaits : LeaverStep::kIsSaved;
}

void SaveAtRest(const CoreContext& context, const CheckpointTracker& saves, const Position& position,
                const std::string& reason) {
  for (Worker* worker : context.roster.InOrder()) {
    if (!HoldsCurrent(context.history, *worker) || worker->held->position != position) continue;
    if (worker->rest_asked == position || saves.Holds(worker->id(), position.step)) continue;
    if (worker->stage == Worker::Stage::kPreparing) continue;  // its replica is being built anew: asked when it is
    worker->rest_asked = position;
    context.out.Command(*worker, worker->last_generation, TakeSnapshot{context.history.lineage(), position}, reason);
  }
}

}  // namespace lockstep::chief
