// Workers that people send away (`lockstep drain`). A drained worker goes as one does that was asked itself: members
// meet at a boundary, nobody's last copy leaves before it is saved. It hears of it only by the word that ends it, so a
// chief that dies in between leaves a worker that steps on; the next chief has the drain from the storage.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/core/coordinator.h"
#include "chief/core/states_at_rest.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {
namespace {

constexpr size_t kMostListed = 32;

std::string Listed(std::vector<std::string> names) {
  const size_t more = names.size() - std::min(names.size(), kMostListed);
  names.resize(names.size() - more);
  return absl::StrCat(absl::StrJoin(names, ", "), more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

}  // namespace

void Coordinator::On(const DrainRequested& event) {
  DrainDecided answer;
  answer.request = event.request;
  if (std::string why = WhyNotDrain(event); !why.empty()) {
    answer.refused = true;
    answer.lines.push_back(std::move(why));
    out_.Add(std::move(answer));
    return;
  }
  if (event.undo) {
    LiftDrains(event, answer.lines);
  } else {
    AddDrains(event, answer.lines);
  }
  for (const std::string& line : answer.lines) out_.Say(Level::kInfo, absl::StrCat(event.by, ": ", line));
  answer.drains = drains_.All();
  out_.Add(std::move(answer));
}

std::string Coordinator::WhyNotDrain(const DrainRequested& event) {
  if (result_.has_value()) return "the job has ended";
  if (event.targets.empty()) return "name a worker or a host";
  for (const std::string& target : event.targets) {
    if (event.undo && !drains_.Has(target)) {
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

void Coordinator::AddDrains(const DrainRequested& event, std::vector<std::string>& lines) {
  for (const std::string& target : event.targets) {
    drains_.Add(target, now_ + event.within);
    bool any_here = false;
    for (const Worker* worker : roster_.InOrder()) {
      if (worker->name() != target && worker->host != target) continue;
      any_here = true;
      lines.push_back(absl::StrCat(worker->name(), " on ", worker->host, " leaves",
                                   worker->AtRest() ? "" : " at the next step boundary"));
    }
    if (!any_here)
      lines.push_back(absl::StrCat("no worker of '", target, "' is here; those that come are turned away"));
  }
  MarkDrained();
  if (std::string remains = WhatRemains(); !remains.empty()) lines.push_back(std::move(remains));
}

void Coordinator::LiftDrains(const DrainRequested& event, std::vector<std::string>& lines) {
  for (const std::string& target : event.targets) {
    drains_.Lift(target);
    lines.push_back(absl::StrCat("'", target, "' may come back"));
  }
  MarkDrained();
}

std::string Coordinator::WhatRemains() {
  uint32_t staying = 0;
  for (const Worker* worker : roster_.InOrder()) staying += worker->leaving ? 0 : 1;
  if (staying >= policy_.min_workers) return "";
  const std::string who = staying == 0 ? "nobody stays: what is trained is saved before the last one goes, and the job"
                                       : absl::StrCat("only ", staying, " of at least ", policy_.min_workers,
                                                      " workers stay: the job stands,");
  return absl::StrCat(who, " waits for others, for ", absl::FormatDuration(policy_.wait_for_min),
                      " at most; then it ends with code ", int{kExitPreempted});
}

bool Coordinator::RefuseDrained(SessionId session, const Hello& hello) {
  if (result_.has_value() || hello.has_state || hello.activity != Activity::kIdle) return false;
  const std::optional<std::string> drain = drains_.Of(hello.preferred_name, hello.host);
  if (!drain.has_value()) return false;
  const std::string message =
      absl::StrCat("'", *drain, "' is drained; `lockstep drain --undo ", *drain, "` lets it come back",
                   hello.preferred_name.empty() && *drain != hello.host
                       ? ". Give other workers of this host names of their own (--name)"
                       : "");
  if (drains_.FirstRefusal(*drain)) {
    out_.Say(Level::kInfo, absl::StrCat("a process on ", hello.host, " is turned away, and others like it: ", message));
  }
  out_.Command(session, Generation(), Refused{kExitPreempted, message}, message);
  out_.Add(CloseSession{session, "drained"});
  return true;
}

void Coordinator::MarkDrained() {
  for (Worker* worker : roster_.InOrder()) {
    const bool drained = drains_.Of(worker->name(), worker->host).has_value();
    if (drained && !worker->leaving) {
      worker->leaving = worker->drained = true;
    } else if (!drained && worker->drained && !worker->dismissed) {
      worker->leaving = worker->drained = false;
      late_.erase(worker->id());
    }
  }
}

void Coordinator::DismissDrained(Worker& worker, const std::string& reason) {
  worker.dismissed = true;
  out_.Command(worker, worker.busy, Shutdown{kExitPreempted, absl::StrCat("drained: ", reason)}, reason);
}

bool Coordinator::OthersStepOnWithout(const Worker& worker) {
  if (!life_.Is(Phase::kRunning) || !life_.IsMember(worker)) return false;
  return life_.AnyMember(roster_, [this](const Worker& other) { return !other.leaving && life_.Runs(other); });
}

void Coordinator::EndLateDrains() {
  if (life_.Is(Phase::kDone) || life_.Is(Phase::kEnded)) return;
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->drained || worker->dismissed || now_ < drains_.UntilOf(worker->name(), worker->host)) continue;
    if (OthersStepOnWithout(*worker)) {
      out_.Say(Level::kWarning, absl::StrCat(worker->name(),
                                             " goes in the middle of a step, its time is over: the "
                                             "others compute that step again"));
      DismissDrained(*worker, "its time is over, and others hold what it holds");
    } else if (late_.insert(worker->id()).second) {
      out_.Say(Level::kError, WhyLate(*worker));
    }
  }
}

std::string Coordinator::WhyLate(const Worker& worker) {
  const std::string trouble = saves_.TroubleText(now_);
  const std::string cause =
      worker.AtRest() && LastCopyLeaves(worker)
          ? absl::StrCat("nobody who stays holds step ", worker.held->position.step, ", and it is not saved yet",
                         trouble.empty() ? "" : absl::StrCat(" (", trouble, ")"))
          : "what others hold beyond the newest checkpoint is not known";
  return absl::StrCat(worker.name(), " on ", worker.host, " was to be gone by now, which is impossible: ", cause,
                      ". It stays until that is mended. Whoever ends its process gives up what is newer than step ",
                      saves_.published().step);
}

std::string Coordinator::DrainText() const {
  if (drains_.empty()) return "";
  return absl::StrCat("; drained: ", Listed(drains_.Targets()), " (`lockstep drain --undo NAME` lets them come back)");
}

}  // namespace lockstep::chief
