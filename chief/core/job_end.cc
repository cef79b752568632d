#include "chief/core/job_end.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/core/leavers.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

bool JobEnd::Stop(Ending ending) {
  if (pending_.has_value()) return false;
  pending_ = std::move(ending);
  return true;
}

std::optional<JobEnd::Ending> JobEnd::Reached(const CoreContext& context, const GenerationLife& life,
                                              const CheckpointTracker& saves, const Departures& gone,
                                              uint64_t agreed) const {
  const JobPolicy& policy = context.policy;
  const uint64_t published = saves.published().step;
  if (EndsAt(policy.training, published, saves.published_ledger()) && saves.published_evaluated()) {
    if (published >= policy.training.end_step) {
      return Ending{0, absl::StrCat("the job is done: step ", published, " is published")};
    }
    const bool early = EndsEarly(policy.training.evaluation, saves.published_ledger(), published);
    return Ending{0, absl::StrCat(early ? "the job is done: evaluations no longer improve" : "stopped by a hook",
                                  ", step ", published, " is published")};
  }
  if (!pending_.has_value()) return std::nullopt;
  if (life.Is(Phase::kFinishing)) {
    if (published < life.final_step()) return std::nullopt;
  } else if (life.Is(Phase::kWaiting)) {
    if (!AllIsSaved(context, life, saves, gone, agreed)) return std::nullopt;
  } else {
    return std::nullopt;
  }
  return Ending{pending_->code, absl::StrCat(pending_->reason, "; step ", published, " is published")};
}

void JobEnd::Finish(const CoreContext& context, const Ending& ending, GenerationLife& life,
                    const CheckpointTracker& saves, Departures& gone) {
  life.Done();
  result_ = ending;
  // A failure is said by the process's last line.
  const bool well = ending.code == kExitDone || ending.code == kExitPreempted;
  if (well) context.out.Say(Level::kInfo, ending.reason);
  for (const Member& member : life.current().members) gone.MustHear(member.incarnation, member.name);
  gone.GiveUpBefore(context.now - context.policy.training.chief_timeout);
  for (const Worker* worker : context.roster.InOrder()) Tell(context, *worker, saves, gone);
}

void JobEnd::Tell(const CoreContext& context, const Worker& worker, const CheckpointTracker& saves,
                  Departures& gone) const {
  gone.IsTold(worker.id(), worker.name());
  context.out.Command(worker, Generation(), Done{result_->code, saves.published().step, saves.published().digest},
                      result_->reason);
}

bool JobEnd::MayExit(const CoreContext& context, const GenerationLife& life, const Departures& gone) {
  if (!done_since_.has_value()) done_since_ = context.now;
  const bool all_told = gone.AllHeard() && context.roster.size() == 0;
  // A chief that found the job done does not know its members, and a worker that lost its session may live: they ask
  // every second while they do. A first chief that formed no generation has no members.
  const bool knows_members = !life.current().id.IsNone() || context.term == 1;
  const bool knows_all = knows_members && gone.NobodyMayReturn();
  const bool may_know_all = knows_all || context.Passed(*done_since_ + context.policy.heartbeat_limit);
  return (all_told && may_know_all) || context.Passed(*done_since_ + context.policy.training.chief_timeout);
}

}  // namespace lockstep::chief
