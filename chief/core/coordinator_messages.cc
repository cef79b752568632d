// What workers say, and which parts take it.
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/core/coordinator.h"
#include "chief/core/snapshot_terms.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

void Coordinator::On(const FromWorker& event) {
  if (const auto* hello = std::get_if<Hello>(&event.message)) return OnHello(event.session, event.fence, *hello);
  Worker* worker = roster_.BySession(event.session);
  // A mismatch is answered: silence is how systems hang (rule 10).
  std::string mismatch;
  if (worker == nullptr) {
    mismatch = "this session has said no Hello";
  } else if (event.fence.incarnation != worker->id()) {
    mismatch = absl::StrCat("this session belongs to ", worker->name(), ", another process");
  } else if (event.fence.term != term_) {
    mismatch = absl::StrCat("the message is for term ", event.fence.term, "; this is term ", term_);
  } else if (event.fence.job != policy_.job) {
    mismatch = absl::StrCat("the message is for job ", event.fence.job, "; this is job ", policy_.job);
  }
  if (!mismatch.empty()) {
    out_.Command(event.session, Generation(), Fenced{mismatch}, mismatch);
    return;
  }
  worker->heard = now_;
  std::visit([&](const auto& message) { OnMessage(*worker, message); }, event.message);
}

void Coordinator::On(const HeartbeatReceived& event) {
  defers_to_tick_ = true;  // heartbeats are most of what comes in: what they change is judged by the next Tick
  Worker* worker = roster_.Find(event.fence.incarnation);
  if (worker != nullptr && event.fence.term == term_) signs_.Beat(*worker, event, now_);
}

void Coordinator::OnMessage(Worker&, const Hello&) {}  // handled by OnHello, before a session is looked up

// ---- getting ready

void Coordinator::OnMessage(Worker& worker, const PlanMade& message) {
  RefuseWorker(worker, preparation_.Made(Context(), worker, message));
}

void Coordinator::OnMessage(Worker& worker, const Ready& message) {
  RefuseWorker(worker, preparation_.Prepared(Context(), worker, message, pairs_));
}

void Coordinator::OnMessage(Worker& worker, const PrepareFailed& message) {
  const bool untrained = saves_.published().step == 0;
  const std::optional<Preparation::Refusal> refusal = preparation_.Failed(Context(), worker, message, untrained);
  if (!refusal.has_value() || !worker.held.has_value()) return RefuseWorker(worker, refusal);
  // It goes as leavers do: what it alone holds is saved first.
  worker.unfit = Refused{refusal->code, refusal->message};
  worker.leaving = true;
}

void Coordinator::OnMessage(Worker& worker, const PeersTested& message) {
  preparation_.Tested(Context(), worker, message, pairs_);
}

// ---- generations

void Coordinator::Rest(Worker& worker, const Generation& last, std::optional<HeldState> held) {
  life_.Rest(worker, last, std::move(held));
  TakeEarlySnapshots(worker);
}

void Coordinator::OnMessage(Worker& worker, const VerdictAck& message) {
  if (worker.AtRest() || message.generation != worker.busy) return;  // repeated
  if (life_.IsMember(worker) && !worker.verdict_sent) {
    Break(absl::StrCat(worker.name(), " left generation ", message.generation.ToString(), ", which nobody had ended"));
  }
  std::optional<HeldState> held;
  if (message.has_state) held = HeldState{message.lineage, message.position, message.digest};
  if (message.has_state) TakeUpLineage(message.lineage);
  if (held.has_value()) CompareHeld(worker, *held);
  Rest(worker, message.generation, std::move(held));
  worker.Keeps(message.kept);
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
  worker.Keeps(message.kept);
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
  if (kAwaited->count(message.command) == 0) return;
  life_.GiveUp(worker.busy);
  Lose(worker.id(), WorkerChange::kLost, absl::StrCat("it rejected ", message.command), /*close=*/true);
}

// ---- steps

bool Coordinator::TellProgress() {
  auto agreed = progress_.TakeAgreed();
  const bool went_on = agreed.has_value();
  if (went_on) out_.Add(*std::move(agreed));
  if (progress_.LowestApplied() > life_.current().begin.step) {
    hosts_.StepAgreed();
    gathering_.Stepped();
    signs_.Stepped(life_.current().members);
  }
  for (EvaluationDone& evaluation : progress_.TakeEvaluations()) out_.Add(std::move(evaluation));
  return went_on;
}

void Coordinator::OnMessage(Worker& worker, const Report& message) {
  if (!message.stats.empty()) out_.Add(WorkerCounters{worker.name(), message.stats});
  if (message.lineage == history_.lineage()) progress_.AddRecords(message.records);
  if (life_.Is(Phase::kAdopting)) {
    // Whether its generation goes on is not known yet; if so, it goes on from here.
    if (!life_.Moved(worker, message.generation, message.lineage, message.position)) return;
    if (message.lineage != history_.lineage()) return;
    for (const StateDigest& digest : message.digests) CompareDigest(worker, digest.position.step, digest.digest);
    return;
  }
  if (!life_.InCurrent(Context(), worker, message.generation) || message.lineage != history_.lineage()) return;
  signs_.Progressed(worker, now_);
  stragglers_.NoteSpeed(Context(), Spares(), worker, message);
  progress_.Applied(worker.id(), message.position);
  // All members report the same step: what follows from it is decided with the last of them.
  defers_to_tick_ = !TellProgress() && life_.Is(Phase::kRunning) && message.digests.empty();
  for (const StateDigest& digest : message.digests) CompareDigest(worker, digest.position.step, digest.digest);
}

void Coordinator::OnMessage(Worker&, const EvalReport& message) {
  const std::string finding = progress_.AddSlices(message);
  if (!finding.empty()) out_.Say(Level::kError, finding);
  TellProgress();
}

void Coordinator::OnMessage(Worker&, const TextSample& message) {
  if (message.lineage == history_.lineage()) out_.Add(RecordSample{message.lineage, message.step, message.text});
}

void Coordinator::OnMessage(Worker&, const Observation& message) {
  if (message.lineage != history_.lineage()) return;
  out_.Add(RecordObservation{message.lineage, message.step, message.hook, message.content});
}

// ---- saves

void Coordinator::OnMessage(Worker& worker, const SnapshotTaken& message) {
  const SnapshotId& snapshot = message.snapshot;
  if (!history_.Includes(snapshot.lineage, snapshot.step)) {
    out_.Command(worker, Generation(), SnapshotEnded{snapshot, false}, "it belongs to another lineage");
    return;
  }
  const SnapshotTerms terms = TermsOf(Context(), life_, worker, message);
  if (terms.early) {
    if (worker.early_snapshots.size() < kMaxHeldSnapshots) {
      worker.early_snapshots.push_back(message);
    } else {
      out_.Command(worker, Generation(), SnapshotEnded{snapshot, false}, "too many snapshots wait for their members");
    }
    return;
  }
  NoteTaken(snapshot.step);
  const bool at_rest = message.cause == SnapshotCause::kAtRest;
  if (terms.of_current && !at_rest) progress_.Applied(worker.id(), Position{snapshot.step, 0});
  life_.RequestServed(RequestKind::kSnapshot);
  life_.RequestServed(RequestKind::kSnapshotHold);
  CompareDigest(worker, snapshot.step, snapshot.digest);
  if (repair_.pending()) {
    out_.Command(worker, Generation(), SnapshotEnded{snapshot, false}, "replicas differ");
  } else {
    const std::string finding =
        saves_.Taken(worker.id(), message, terms.evaluated, terms.members, terms.audits, out_, roster_);
    if (!finding.empty()) OnDifference(worker, snapshot, finding);
  }
  if (at_rest) worker.rest_asked.reset();  // if that save fails, it is asked again
  const bool last = message.cause == SnapshotCause::kEnd || message.cause == SnapshotCause::kStop;
  if (last) life_.Finished(worker, message.generation, snapshot.step);
  TellProgress();
}

void Coordinator::TakeEarlySnapshots(Worker& worker) {
  for (const SnapshotTaken& taken : std::exchange(worker.early_snapshots, {})) OnMessage(worker, taken);
}

void Coordinator::OnMessage(Worker& worker, const ShareFailed& message) {
  if (!saves_.Failed(worker.id(), message)) return;  // a consequence of what the storage said
  out_.Say(Level::kWarning, absl::StrCat(worker.name(), " could not send share ", message.share + 1, " of ",
                                         message.shares, " of ", message.snapshot.ToString(), ": ", message.message));
}

// ---- leaving, failing

void Coordinator::OnMessage(Worker& worker, const LeaveIntent& message) {
  if (worker.leaving && !worker.drained) return;
  worker.leaving = true;
  worker.drained = false;  // it knows itself
  out_.Say(Level::kInfo,
           absl::StrCat(worker.name(), " was asked to leave; it has ", absl::FormatDuration(message.grace)));
}

void Coordinator::OnMessage(Worker& worker, const Left& message) {
  const Incarnation id = worker.id();
  const std::string name = worker.name();
  Lose(id, message.exit_code == kExitPreempted ? WorkerChange::kPreempted : WorkerChange::kLost,
       absl::StrCat("it left: ", message.reason), /*close=*/true);
  gone_.SaidGoodbye(id, name);
}

void Coordinator::OnMessage(Worker& worker, const ErrorReport& message) {
  const std::string cause =
      absl::StrCat(worker.name(), " on ", worker.host, " at step ", message.step, ": ", message.message);
  out_.Say(Level::kError, cause);
  const bool member = life_.Runs(worker);
  // Bad data or non-finite values under `on_nan: stop`: every worker would meet the same. What is trained is saved
  // first.
  if (member && message.exit_code == kExitBadData) {
    end_.Stop({kExitBadData, cause});
    return;
  }
  gone_.ReportedError(worker.name());
  CountFailure(worker.host, cause, member);
  Lose(worker.id(), WorkerChange::kCrashed, message.message, /*close=*/true);
}

}  // namespace lockstep::chief
