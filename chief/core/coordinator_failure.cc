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
  const bool member = life_.Runs(worker);
  // Bad data or non-finite values under `on_nan: stop`: every worker would meet the same. What is trained is saved
  // first.
  if (member && message.exit_code == kExitBadData) {
    if (!ending_.has_value()) ending_ = Ending{kExitBadData, cause};
    return;
  }
  gone_.ReportedError(worker.name());
  CountFailure(worker.host, cause, member);
  if (!life_.Is(Phase::kEnded)) Lose(worker.id(), WorkerChange::kCrashed, message.message, /*close=*/true);
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
  const bool member = worker != nullptr && life_.Runs(*worker);
  CountFailure(worker != nullptr ? worker->host : hosts_.HostOf(event.name), cause,
               member || life_.WasBrokenBy(event.name));
}

void Coordinator::SpendFailure(const std::string& host, const std::string& cause, bool broke_generation) {
  budget_.Spend(cause, host);
  if (broke_generation) budget_.GenerationBroken();
  const std::string verdict = budget_.Verdict();
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
  const bool member = life_.IsMember(*worker);
  if (change != WorkerChange::kLost) life_.GiveUp(worker->busy);  // it will not come back to it
  if (close) out_.Add(CloseSession{worker->session, reason});
  if (!life_.Is(Phase::kDone)) {
    out_.Add(WorkerChanged{name, incarnation, change, reason});
    gone_.Count(name, change, reason);
  }
  roster_.Remove(incarnation);
  if (life_.Forget(incarnation, name, now_)) NoteLoss(host, name);
  stragglers_.Forget(incarnation);
  late_.erase(incarnation);
  pairs_.Forget(incarnation);
  saves_.HolderGone(incarnation);
  gone_.Went(incarnation, name, change, now_);
  if (member) life_.MemberLost(Context(), name, reason, progress_);
}

void Coordinator::NoteProgress(Worker& worker) {
  if (Works(worker.phase)) no_progress_.WentOn(now_ - worker.progressed);
  worker.progressed = now_;
}

void Coordinator::CheckLifeSigns() {
  for (Worker* worker : roster_.InOrder()) {
    const Incarnation id = worker->id();
    if (now_ - worker->heard > policy_.heartbeat_limit) {
      life_.NoteSilence(Context());
      Lose(id, WorkerChange::kLost, absl::StrCat("silent for ", absl::FormatDuration(now_ - worker->heard)), true);
      continue;
    }
    if (!Works(worker->phase) || now_ - worker->progressed <= no_progress_.Of(worker->name())) continue;
    const std::string reason =
        absl::StrCat("no node executed and no byte moved for ", absl::FormatDuration(now_ - worker->progressed),
                     worker->doing.empty() ? "" : absl::StrCat(": ", worker->doing));
    no_progress_.Lost(worker->name());
    life_.GiveUp(worker->busy);  // its session lives: it would come back as it is
    Lose(id, WorkerChange::kLost, reason, true);
  }
}

void Coordinator::EndJob(int32_t code, const std::string& reason) {
  if (life_.Is(Phase::kEnded)) return;
  life_.End();
  for (Worker* worker : roster_.InOrder()) {
    out_.Command(*worker, worker->busy, Shutdown{code, reason}, reason);
  }
  out_.Add(Exit{code, reason});
}

}  // namespace lockstep::chief
