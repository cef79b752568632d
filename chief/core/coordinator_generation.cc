// What members say of their generation, and what follows for the others (rules 4, 8, 10, 14).
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/core/coordinator.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

void Coordinator::Break(const std::string& reason) {
  if (!reason.empty()) life_.Break(Context(), reason, progress_.agreed());
}

void Coordinator::AdvanceAdopting() {
  if (FinishIfPublished()) return;
  const auto adoption = life_.AdvanceAdopting(Context(), saves_.published().lineage);
  if (!adoption.has_value()) return;
  const GenerationLife::Current& current = life_.current();
  history_.Rename(adoption->lineage);
  pairs_.FormedTogether(current.ids);
  progress_.Begin(history_.lineage(), adoption->positions);
  audit_.Adopted(current.begin.step, current.Ids());
  parked_since_.reset();
}

void Coordinator::AdvanceForming() {
  if (life_.AdvanceForming(Context())) pairs_.FormedTogether(life_.current().ids);
}

void Coordinator::AdvanceBreaking() {
  const auto finding = life_.AdvanceBreaking(Context(), progress_.agreed());
  if (!finding.has_value()) return;
  for (const Suspicion& suspicion : finding->suspicions) {
    if (suspicion.one == suspicion.other) {
      pairs_.SuspectItself(suspicion.one, now_);
    } else {
      pairs_.Suspect(suspicion.one, suspicion.other, suspicion.while_forming, now_);
    }
  }
  if (finding->all_in_doubt) pairs_.SuspectAll(life_.current().ids, now_);
  last_call_until_ = now_ + policy_.last_call;
}

void Coordinator::Rest(Worker& worker, const Generation& last, std::optional<HeldState> held) {
  life_.Rest(worker, last, std::move(held));
  saves_.NotExpected(worker.id());
}

void Coordinator::OnMessage(Worker& worker, const VerdictAck& message) {
  if (worker.AtRest() || message.generation != worker.busy) return;  // repeated
  std::optional<HeldState> held;
  if (message.has_state) held = HeldState{message.lineage, message.position, message.digest};
  if (message.has_state) TakeUpLineage(message.lineage);
  if (held.has_value()) CompareHeld(worker, *held);
  Rest(worker, message.generation, std::move(held));
}

void Coordinator::OnMessage(Worker& worker, const AtBoundary& message) {
  if (!life_.InCurrent(Context(), worker, message.generation)) return;
  progress_.Applied(worker.id(), message.position);
  worker.leaving = worker.leaving || message.leaving;
  worker.drained = worker.drained && !message.leaving;
  life_.MeetAt(Context(), message.position);
  const HeldState held{message.lineage, message.position, message.digest};
  CompareHeld(worker, held);
  Rest(worker, message.generation, held);
  TellProgress();
}

void Coordinator::OnMessage(Worker& worker, const Formed& message) {
  if (!life_.InCurrent(Context(), worker, message.generation)) return;
  Break(life_.Formed(worker, message.position));
}

void Coordinator::OnMessage(Worker& worker, const PeerFailed& message) {
  if (!life_.InCurrent(Context(), worker, message.generation)) return;
  saves_.NotExpected(worker.id());
  Break(life_.Accuse(Context(), worker, message));
}

void Coordinator::OnMessage(Worker& worker, const StoreSet& message) {
  if (!life_.InCurrent(Context(), worker, message.generation)) return;
  Break(life_.Relay(Context(), worker, message));
}

void Coordinator::OnMessage(Worker& worker, const CommandRejected& message) {
  out_.Say(Level::kWarning, absl::StrCat(worker.name(), " rejected ", message.command, ": ", message.reason));
  const Generation believed = worker.busy;
  if (life_.Runs(worker) && message.generation != believed) {
    // It does not run what this chief believes: that generation lacks a member.
    Break(absl::StrCat(worker.name(), " does not run generation ", believed.ToString()));
  }
  // This chief is wrong about the worker. In a new session, a second later, the worker says what it runs and holds.
  static const std::set<std::string>* const kAwaited = new std::set<std::string>(
      {Form::kTypeName, MakePlan::kTypeName, Prepare::kTypeName, TakeSnapshot::kTypeName, Dismiss::kTypeName});
  if (kAwaited->count(message.command) != 0) {
    life_.GiveUp(worker.busy);
    Lose(worker.id(), WorkerChange::kLost, absl::StrCat("it rejected ", message.command), /*close=*/true);
  }
}

}  // namespace lockstep::chief
