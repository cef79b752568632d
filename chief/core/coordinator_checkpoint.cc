// What members report, what is saved, and how the job ends (rules 6, 7, 18 to 21).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/core/coordinator.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

// ---- progress
// --------------------------------------------------------------------------------------------------------

bool Coordinator::TellProgress() {
  auto agreed = progress_.TakeAgreed();
  const bool went_on = agreed.has_value();
  if (went_on) out_.Add(*std::move(agreed));
  if (progress_.LowestApplied() > current_.begin.step) {
    budget_.StepAgreed();
    if (no_progress_.IsRaised()) {
      for (const Member& member : current_.members) no_progress_.Stepped(member.name);
    }
  }
  for (EvaluationDone& evaluation : progress_.TakeEvaluations()) out_.Add(std::move(evaluation));
  return went_on;
}

void Coordinator::OnMessage(Worker& worker, const Report& message) {
  if (!message.stats.empty()) out_.Add(WorkerStats{worker.name(), message.stats});
  if (message.lineage == history_.lineage()) progress_.AddRecords(message.records);
  if (phase_ == Phase::kAdopting) {
    // Whether its generation goes on is not known yet; if so, it goes on from here.
    if (message.generation != worker.busy || !worker.claimed.has_value()) return;
    worker.claimed->position = message.position;
    if (message.lineage != history_.lineage()) return;
    for (const StateDigest& digest : message.digests) CompareDigest(worker, digest.position.step, digest.digest);
    return;
  }
  if (!InCurrent(worker, message.generation) || message.lineage != history_.lineage()) return;
  NoteProgress(worker);
  NoteSpeed(worker, message);
  progress_.Applied(worker.id(), message.position);
  // All members report the same step: what follows from it is decided with the last of them.
  only_told_ = !TellProgress() && phase_ == Phase::kRunning && message.digests.empty();
  for (const StateDigest& digest : message.digests) CompareDigest(worker, digest.position.step, digest.digest);
}

void Coordinator::OnMessage(Worker&, const EvalReport& message) {
  const std::string finding = progress_.AddSlices(message);
  if (!finding.empty()) out_.Say(Level::kError, finding);
  TellProgress();
}

void Coordinator::OnMessage(Worker&, const TextSample& message) {
  if (message.lineage == history_.lineage()) out_.Add(SampleTold{message.lineage, message.step, message.text});
}

// ---- saves
// -----------------------------------------------------------------------------------------------------------

CheckpointTracker::Context Coordinator::SaveContext() const { return {now_, plan_.hash(), trained_for_, history_}; }

void Coordinator::AdvanceSaves() {
  if (!saves_.storage_verdict().empty()) return EndJob(kExitStorage, saves_.storage_verdict());
  if (!repair_.pending()) saves_.Advance(SaveContext(), out_, roster_);
}

void Coordinator::OnMessage(Worker& worker, const SnapshotTaken& message) {
  const SnapshotId& snapshot = message.snapshot;
  if (!history_.Includes(snapshot.lineage, snapshot.step)) {
    out_.Command(worker, Generation(), SnapshotEnded{snapshot, false}, "it belongs to another lineage");
    return;
  }
  const bool of_current = message.generation == current_.id && current_.Has(worker.id());
  std::vector<Incarnation> members = {worker.id()};
  bool audits = true;  // when all `members` have reported it, it is audited
  if (message.cause == SnapshotCause::kAtRest) {
    members.clear();
    for (Worker* other : roster_.InOrder()) {
      if (other->rest_asked.has_value() && other->rest_asked->step == snapshot.step) members.push_back(other->id());
    }
    audits = members.size() > 1;
  } else if (of_current) {
    members = current_.Ids();
    progress_.Applied(worker.id(), Position{snapshot.step, 0});
  } else if (message.generation == worker.busy && worker.claims != nullptr) {
    members.clear();
    for (const Member& member : *worker.claims) members.push_back(member.incarnation);
  } else {
    audits = false;
  }
  current_.requested.erase(RequestKind::kSnapshot);
  current_.requested.erase(RequestKind::kSnapshotHold);
  // Steps evaluate before they save; a state that is saved at rest may have stopped halfway, and one that was finished
  // under an earlier chief may not have known of evaluations.
  const Position evaluated = RestoredPosition(policy_.training, snapshot.step);
  bool is_evaluated = true;
  if (message.cause == SnapshotCause::kAtRest) {
    is_evaluated = worker.held.has_value() && worker.held->position >= evaluated;
  } else if (worker.finished && worker.claimed.has_value() && worker.claimed->position.step == snapshot.step) {
    is_evaluated = worker.claimed->position >= evaluated;
  }
  CompareDigest(worker, snapshot.step, snapshot.digest);
  if (repair_.pending()) {
    out_.Command(worker, Generation(), SnapshotEnded{snapshot, false}, "replicas differ");
  } else {
    const std::string finding = saves_.Taken(worker.id(), message, is_evaluated, members, audits, out_, roster_);
    if (!finding.empty()) OnDifference(snapshot.step, absl::StrCat(worker.name(), ": ", finding));
  }
  if (message.cause == SnapshotCause::kAtRest) worker.rest_asked.reset();  // if that save fails, it is asked again

  const bool last = message.cause == SnapshotCause::kEnd || message.cause == SnapshotCause::kStop;
  if (last && phase_ == Phase::kAdopting && message.generation == worker.busy && worker.claimed.has_value()) {
    worker.finished = true;  // as if its Hello had said so
    worker.claimed->position = std::max(worker.claimed->position, Position{snapshot.step, 0});
  }
  const bool steps = phase_ == Phase::kForming || phase_ == Phase::kRunning || phase_ == Phase::kFinishing;
  if (last && of_current && steps && !worker.AtRest()) {
    worker.finished = true;
    final_step_ = snapshot.step;
    phase_ = Phase::kFinishing;
  }
  TellProgress();
}

void Coordinator::OnMessage(Worker& worker, const ShareFailed& message) {
  if (!saves_.Failed(worker.id(), message)) return;  // a consequence of what the storage said
  out_.Say(Level::kWarning, absl::StrCat(worker.name(), " could not send share ", message.share + 1, " of ",
                                         message.shares, " of ", message.snapshot.ToString(), ": ", message.message));
}

// ---- the end
// ---------------------------------------------------------------------------------------------------------

bool Coordinator::FinishIfPublished() {
  if (repair_.pending()) return false;  // what is published may be wrong
  const uint64_t published = saves_.published().step;
  if (EndsAt(policy_.training, published, saves_.published_ledger()) && saves_.published_evaluated()) {
    const char* const why = published < policy_.training.end_step ? "evaluations no longer improve, " : "";
    Finish(Ending{0, absl::StrCat("the job is done: ", why, "step ", published, " is published")});
    return true;
  }
  if (!ending_.has_value()) return false;
  if (phase_ == Phase::kFinishing && published < final_step_) return false;
  if (phase_ == Phase::kWaiting) {
    // A worker that lost its session comes back within seconds, perhaps with a newer state than the published one.
    if (saves_.IsNewer(progress_.agreed()) && !Passed(gone_.last_lost() + policy_.heartbeat_limit)) return false;
    for (Worker* worker : roster_.InOrder()) {
      if (MayHoldNewer(*worker)) return false;
    }
  } else if (phase_ != Phase::kFinishing) {
    return false;
  }
  Finish(Ending{ending_->code, absl::StrCat(ending_->reason, "; step ", published, " is published")});
  return true;
}

void Coordinator::AdvanceFinishing() {
  if (FinishIfPublished() || saves_.Saving(final_step_)) return;
  Break(absl::StrCat("every worker that held the snapshot of step ", final_step_, " is gone"));
}

void Coordinator::Finish(const Ending& ending) {
  phase_ = Phase::kDone;
  result_ = ending;
  // A failure is said by the process's last line.
  if (ending.code == kExitDone || ending.code == kExitPreempted) out_.Say(Level::kInfo, ending.reason);
  for (const Member& member : current_.members) gone_.MustHear(member.incarnation, member.name);
  gone_.GiveUpBefore(now_ - policy_.training.chief_timeout);
  for (Worker* worker : roster_.InOrder()) SendDone(*worker);
}

void Coordinator::SendDone(Worker& worker) {
  gone_.IsTold(worker.id(), worker.name());
  out_.Command(worker, Generation(), Done{result_->code, saves_.published().step, saves_.published().digest},
               result_->reason);
}

void Coordinator::AdvanceDone() {
  if (repair_.pending()) return AdvanceRepair();
  if (!done_since_.has_value()) done_since_ = now_;
  const bool all_told = gone_.AllHeard() && roster_.size() == 0;
  // A chief that found the job done does not know its members, and a worker that lost its session may live: they ask
  // every second while they do. A first chief that formed no generation has no members.
  const bool knows_members = !current_.id.IsNone() || term_ == 1;
  const bool knows_all = knows_members && gone_.NobodyMayReturn();
  const bool may_know_all = knows_all || Passed(*done_since_ + policy_.heartbeat_limit);
  if ((!all_told || !may_know_all) && !Passed(*done_since_ + policy_.training.chief_timeout)) return;
  phase_ = Phase::kEnded;
  out_.Add(Exit{result_->code, result_->reason});
}

}  // namespace lockstep::chief
