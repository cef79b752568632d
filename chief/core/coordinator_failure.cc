// Who is lost, who left, who failed, and what that costs (rules 8, 15 to 17).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "chief/core/coordinator.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {
namespace {

// SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV: the process was at fault itself.
bool IsCrashSignal(int32_t signal) { return signal == 4 || signal == 6 || signal == 7 || signal == 8 || signal == 11; }

}  // namespace

void Coordinator::OnMessage(Worker& worker, const LeaveIntent& message) {
  if (worker.leaving && !worker.drained) return;
  worker.leaving = true;
  worker.drained = false;  // it knows itself
  out_.Say(Level::kInfo,
           absl::StrCat(worker.name(), " was asked to leave; it has ", absl::FormatDuration(message.grace)));
}

void Coordinator::OnMessage(Worker& worker, const Left& message) {
  const Incarnation id = worker.id();
  Lose(id, message.exit_code == kExitPreempted ? WorkerChange::kPreempted : WorkerChange::kLost,
       absl::StrCat("it left: ", message.reason), /*close=*/true);
  gone_.SaidGoodbye(id);
}

void Coordinator::OnMessage(Worker& worker, const ErrorReport& message) {
  const std::string cause =
      absl::StrCat(worker.name(), " on ", worker.host, " at step ", message.step, ": ", message.message);
  out_.Say(Level::kError, cause);
  const bool member = !worker.AtRest() && worker.busy == current_.id;
  // Bad data or non-finite values under `on_nan: stop`: every worker would meet the same. What is trained is saved
  // first.
  if (member && message.exit_code == kExitBadData) {
    if (!ending_.has_value()) ending_ = Ending{kExitBadData, cause};
    return;
  }
  gone_.ReportedError(worker.name());
  CountFailure(worker.host, cause, member);
  if (phase_ != Phase::kEnded) Lose(worker.id(), WorkerChange::kCrashed, message.message, /*close=*/true);
}

void Coordinator::OnMessage(Worker&, const Hello&) {}  // handled by OnHello, before a session is looked up

void Coordinator::On(const ProcessExited& event) {
  const Worker* worker = roster_.ByName(event.name);
  const bool counted = gone_.Exited(event.name, worker == nullptr ? std::nullopt : std::optional(worker->id()), now_);
  if (event.last && !ending_.has_value()) {
    const std::string how = absl::StrCat("ended with code ", event.exit_code);
    ending_ = Ending{event.exit_code, absl::StrCat(event.name, ": ", event.cause.empty() ? how : event.cause)};
  }
  if (!IsCrashSignal(event.signal) || counted) return;
  const std::string cause = absl::StrCat(event.name, " died of signal ", event.signal);
  out_.Add(WorkerChanged{event.name, Incarnation(), WorkerChange::kCrashed, cause});
  out_.Say(Level::kError, cause);
  const bool member = worker != nullptr && !worker->AtRest() && worker->busy == current_.id;
  CountFailure(worker != nullptr ? worker->host : hosts_.HostOf(event.name), cause,
               member || broke_by_.erase(event.name) != 0);
}

void Coordinator::SpendFailure(const std::string& host, const std::string& cause, bool broke_generation) {
  budget_.Spend(cause, host);
  if (broke_generation) budget_.GenerationBroken(host);
  const std::string verdict = budget_.Verdict(hosts_.MayExclude() && OthersSuffice(host) ? host : "");
  if (verdict.empty() || ending_.has_value()) return;
  // What is trained is saved first.
  ending_ = Ending{kExitBug, verdict};
  out_.Say(Level::kError, verdict);
}

void Coordinator::Lose(Incarnation incarnation, WorkerChange change, const std::string& reason, bool close) {
  const Worker* worker = roster_.Find(incarnation);
  if (worker == nullptr) return;
  const std::string name = worker->name();
  const std::string host = worker->host;
  const bool member = !worker->AtRest() && worker->busy == current_.id && current_.Has(incarnation);
  if (change != WorkerChange::kLost) over_ = std::max(over_, worker->busy);  // it will not come back to it
  if (close) out_.Add(CloseSession{worker->session, reason});
  if (phase_ != Phase::kDone) {
    out_.Add(WorkerChanged{name, incarnation, change, reason});
    gone_.Count(name, change, reason);
  }
  roster_.Remove(incarnation);
  if (joined_.erase(incarnation) != 0) NoteLoss(host, name);
  stragglers_.Forget(incarnation);
  late_.erase(incarnation);
  pairs_.Forget(incarnation);
  saves_.HolderGone(incarnation);
  gone_.Went(incarnation, name, change, now_);
  if (current_.Has(incarnation)) backoff_.EndEarly(name, now_);
  if (!member) return;
  if (phase_ == Phase::kRunning && now_ < away_until_ && !IsOver(current_.id)) {
    return ListenAgain(absl::StrCat(name, ": ", reason));
  }
  if (phase_ == Phase::kForming || phase_ == Phase::kRunning) {
    broke_by_.insert(name);
    return Break(absl::StrCat(name, ": ", reason));
  }
  if (phase_ != Phase::kBreaking) return;
  for (Worker* other : roster_.InOrder()) {
    // Members on their way to a boundary will not get there without the one that is lost.
    if (!other->AtRest() && !other->verdict_sent) return Break(absl::StrCat(name, ": ", reason));
  }
}

bool Coordinator::AllSilent() {
  return current_.members.size() > 1 &&
         std::all_of(current_.members.begin(), current_.members.end(), [this](const Member& member) {
           const Worker* worker = roster_.Find(member.incarnation);
           return worker == nullptr || now_ - worker->heard > policy_.heartbeat_limit / 2;
         });
}

void Coordinator::NoteProgress(Worker& worker) {
  if (Works(worker.phase)) no_progress_.WentOn(now_ - worker.progressed);
  worker.progressed = now_;
}

void Coordinator::CheckLifeSigns() {
  for (Worker* worker : roster_.InOrder()) {
    const Incarnation id = worker->id();
    if (now_ - worker->heard > policy_.heartbeat_limit) {
      if (AllSilent()) away_until_ = now_ + policy_.heartbeat_limit;
      Lose(id, WorkerChange::kLost, absl::StrCat("silent for ", absl::FormatDuration(now_ - worker->heard)), true);
      continue;
    }
    if (!Works(worker->phase) || now_ - worker->progressed <= no_progress_.Of(worker->name())) continue;
    const std::string reason =
        absl::StrCat("no node executed and no byte moved for ", absl::FormatDuration(now_ - worker->progressed),
                     worker->doing.empty() ? "" : absl::StrCat(": ", worker->doing));
    no_progress_.Lost(worker->name());
    over_ = std::max(over_, worker->busy);  // its session lives: it would come back as it is
    Lose(id, WorkerChange::kLost, reason, true);
  }
}

void Coordinator::EndJob(int32_t code, const std::string& reason) {
  if (phase_ == Phase::kEnded) return;
  phase_ = Phase::kEnded;
  for (Worker* worker : roster_.InOrder()) {
    out_.Command(*worker, worker->busy, Shutdown{code, reason}, reason);
  }
  out_.Add(Exit{code, reason});
}

}  // namespace lockstep::chief
