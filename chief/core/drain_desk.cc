#include "chief/core/drain_desk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/core/leavers.h"
#include "chief/core/limits.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {
namespace {

constexpr size_t kMostListed = 32;

std::string Listed(std::vector<std::string> names) {
  const size_t more = names.size() - std::min(names.size(), kMostListed);
  names.resize(names.size() - more);
  return absl::StrCat(absl::StrJoin(names, ", "), more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

// What people are told of a job that lacks workers by its drains; empty while enough stay.
std::string WhatRemains(const CoreContext& context) {
  uint32_t staying = 0;
  for (const Worker* worker : context.roster.InOrder()) staying += worker->leaving ? 0 : 1;
  if (staying >= context.policy.min_workers) return "";
  const std::string who = staying == 0 ? "nobody stays: what is trained is saved before the last one goes, and the job"
                                       : absl::StrCat("only ", staying, " of at least ", context.policy.min_workers,
                                                      " workers stay: the job stands,");
  return absl::StrCat(who, " waits for others, for ", absl::FormatDuration(context.policy.wait_for_min),
                      " at most; then it ends with code ", int{kExitPreempted});
}

bool OthersStepOnWithout(const CoreContext& context, const GenerationLife& life, const Worker& worker) {
  if (!life.Is(Phase::kRunning) || !life.IsMember(worker)) return false;
  return life.AnyMember(context.roster, [&](const Worker& other) { return !other.leaving && life.Runs(other); });
}

std::string WhyLate(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                    const Worker& worker) {
  const std::string trouble = saves.TroubleText(context.now);
  const std::string cause =
      worker.AtRest() && LastCopyLeaves(context, life, saves, worker)
          ? absl::StrCat("nobody who stays holds step ", worker.held->position.step, ", and it is not saved yet",
                         trouble.empty() ? "" : absl::StrCat(" (", trouble, ")"))
          : "what others hold beyond the newest checkpoint is not known";
  return absl::StrCat(worker.name(), " on ", worker.host, " was to be gone by now, which is impossible: ", cause,
                      ". It stays until that is mended. Whoever ends its process gives up what is newer than step ",
                      saves.published().step);
}

}  // namespace

DrainDecided DrainDesk::Decide(const CoreContext& context, const DrainRequested& event, bool ended) {
  DrainDecided answer;
  answer.request = event.request;
  if (std::string why = WhyNot(event, ended); !why.empty()) {
    answer.refused = true;
    answer.lines.push_back(std::move(why));
    return answer;
  }
  if (event.undo) {
    Lift(context, event, answer.lines);
  } else {
    Add(context, event, answer.lines);
  }
  for (const std::string& line : answer.lines) context.out.Say(Level::kInfo, absl::StrCat(event.by, ": ", line));
  answer.drains = drains_.All();
  return answer;
}

std::string DrainDesk::WhyNot(const DrainRequested& event, bool ended) const {
  if (ended) return "the job has ended";
  if (event.targets.empty()) return "name a worker or a host";
  for (const std::string& target : event.targets) {
    // One that was undone and could not be stored is undone once more.
    if (event.undo && !drains_.Knows(target)) {
      const std::string others =
          drains_.empty() ? "nothing is drained" : absl::StrCat("drained are ", Listed(drains_.Targets()));
      return absl::StrCat("'", target, "' is not drained; ", others);
    }
    if (!event.undo && !drains_.Knows(target)) {
      const std::vector<std::string> known = drains_.Known();
      return absl::StrCat("this chief has seen no worker and no host '", target, "'; ",
                          known.empty() ? "nobody came so far" : absl::StrCat("it knows ", Listed(known)));
    }
  }
  if (!event.undo && drains_.All().size() + event.targets.size() > kMaxWorkers) {
    return absl::StrCat("at most ", kMaxWorkers, " names can be drained");
  }
  return "";
}

void DrainDesk::Add(const CoreContext& context, const DrainRequested& event, std::vector<std::string>& lines) {
  for (const std::string& target : event.targets) {
    drains_.Add(target, context.now + event.within);
    bool any_here = false;
    for (const Worker* worker : context.roster.InOrder()) {
      if (worker->name() != target && worker->host != target) continue;
      any_here = true;
      lines.push_back(absl::StrCat(worker->name(), " on ", worker->host, " leaves",
                                   worker->AtRest() ? "" : " at the next step boundary"));
    }
    if (!any_here)
      lines.push_back(absl::StrCat("no worker of '", target, "' is here; those that come are turned away"));
  }
  Mark(context.roster);
  if (std::string remains = WhatRemains(context); !remains.empty()) lines.push_back(std::move(remains));
}

void DrainDesk::Lift(const CoreContext& context, const DrainRequested& event, std::vector<std::string>& lines) {
  for (const std::string& target : event.targets) {
    const bool drained = drains_.Has(target);
    drains_.Lift(target);
    lines.push_back(absl::StrCat("'", target, drained ? "' may come back" : "' is not drained"));
  }
  Mark(context.roster);
}

std::optional<std::string> DrainDesk::WhyTurnedAway(const CoreContext& context, const Hello& hello) {
  if (hello.has_state || hello.activity != Activity::kIdle) return std::nullopt;
  const std::optional<std::string> drain = drains_.Of(hello.preferred_name, hello.host);
  if (!drain.has_value()) return std::nullopt;
  std::string why = absl::StrCat("'", *drain, "' is drained; `lockstep drain --undo ", *drain, "` lets it come back",
                                 hello.preferred_name.empty() && *drain != hello.host
                                     ? ". Give other workers of this host names of their own (--name)"
                                     : "");
  if (drains_.FirstRefusal(*drain)) {
    context.out.Say(Level::kInfo,
                    absl::StrCat("a process on ", hello.host, " is turned away, and others like it: ", why));
  }
  return why;
}

void DrainDesk::Came(const CoreContext& context, const Worker& worker) {
  drains_.Saw(worker.name(), worker.host);
  Mark(context.roster);
}

void DrainDesk::Mark(Roster& roster) {
  for (Worker* worker : roster.InOrder()) {
    const bool drained = drains_.Of(worker->name(), worker->host).has_value();
    if (drained && !worker->leaving) {
      worker->leaving = worker->drained = true;
    } else if (!drained && worker->drained && !worker->dismissed) {
      worker->leaving = worker->drained = false;
      late_.erase(worker->id());
    }
  }
}

void DrainDesk::Dismiss(const CoreContext& context, Worker& worker, const std::string& reason) const {
  worker.dismissed = true;
  context.out.Command(worker, worker.busy, Shutdown{kExitPreempted, absl::StrCat("drained: ", reason)}, reason);
}

void DrainDesk::EndLate(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves) {
  if (life.Is(Phase::kDone) || life.Is(Phase::kEnded)) return;
  for (Worker* worker : context.roster.InOrder()) {
    if (!worker->drained || worker->dismissed || context.now < drains_.UntilOf(worker->name(), worker->host)) continue;
    if (OthersStepOnWithout(context, life, *worker)) {
      context.out.Say(Level::kWarning, absl::StrCat(worker->name(),
                                                    " goes in the middle of a step, its time is over: the "
                                                    "others compute that step again"));
      Dismiss(context, *worker, "its time is over, and others hold what it holds");
    } else if (late_.insert(worker->id()).second) {
      context.out.Say(Level::kError, WhyLate(context, life, saves, *worker));
    }
  }
}

std::string DrainDesk::Text() const {
  if (drains_.empty()) return "";
  return absl::StrCat("; drained: ", Listed(drains_.Targets()), " (`lockstep drain --undo NAME` lets them come back)");
}

}  // namespace lockstep::chief
