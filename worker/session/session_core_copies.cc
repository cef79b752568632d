// Snapshots, and copies of audited states for a way back that is short (rule 22).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/session/session_core.h"

namespace lockstep::worker {

void SessionCore::StartSnapshot(SnapshotCause cause) {
  if (HeldSnapshots::Snapshot* held = snapshots_.Find(lineage_, position_.step); held != nullptr) {
    held->cause = cause;
    held->generation = membership_.generation();
    held->ledger = progress_.ledger;
    if (held->id.has_value()) TellSnapshot(*held);
    return;
  }
  const auto oldest =
      snapshots_.Add({lineage_, position_.step, cause, membership_.generation(), progress_.ledger, std::nullopt});
  if (oldest.has_value() && oldest->id.has_value()) Emit(DropSnapshot{*oldest->id, "too many snapshots are held"});
  const bool last = cause == SnapshotCause::kEnd || cause == SnapshotCause::kStop;
  Emit(TakeSnapshot{lineage_, position_.step, "a save is due", last});
}

void SessionCore::On(const SnapshotDone& event) {
  HeldSnapshots::Snapshot* const held = snapshots_.Find(event.snapshot.lineage, event.snapshot.step);
  if (held == nullptr) return Emit(DropSnapshot{event.snapshot, "nobody waits for it any more"});
  held->id = event.snapshot;
  // Reports speak of the present lineage; of a snapshot that a repair gave up they must not.
  if (held->lineage == lineage_) reports_.Add(StateDigest{Position{held->step, 0}, event.snapshot.digest});
  FlushReport();
  TellSnapshot(*held);
}

void SessionCore::TellSnapshot(const HeldSnapshots::Snapshot& snapshot) {
  if (link_.welcomed()) Tell(SnapshotTaken{snapshot.generation, *snapshot.id, snapshot.cause, snapshot.ledger});
}

void SessionCore::Obey(const ChiefFence& fence, const lockstep::TakeSnapshot& command) {
  const bool at_rest = phase_ == Phase::kIdle || phase_ == Phase::kHolding;
  if (!at_rest || !has_state_ || !MayBecome(command.lineage) || position_ != command.position) {
    return Reject(
        fence, lockstep::TakeSnapshot::kTypeName,
        absl::StrCat("asked for ", command.position.ToString(), "; this worker ",
                     !has_state_ ? "holds no state"
                                 : absl::StrCat(at_rest ? "stands at " : "steps on from ", position_.ToString())));
  }
  GoOnAs(command.lineage);
  StartSnapshot(SnapshotCause::kAtRest);
}

void SessionCore::Obey(const ChiefFence&, const AskShare& command) {
  if (!snapshots_.Holds(command.snapshot)) {
    return Tell(
        ShareFailed{command.snapshot, command.share, command.shares, "this snapshot is not held here", /*gone=*/true});
  }
  Emit(UploadShare{WorkerFence{job_, link_.term(), config_.incarnation}, command.snapshot, command.share,
                   command.shares});
}

void SessionCore::On(const ShareUploadFailed& event) {
  Tell(ShareFailed{event.snapshot, event.share, event.shares, event.message});
}

void SessionCore::Obey(const ChiefFence&, const SnapshotEnded& command) {
  if (snapshots_.Remove(command.snapshot)) {
    Emit(DropSnapshot{command.snapshot, command.published ? "published" : "abandoned"});
  }
  if (phase_ == Phase::kHolding && hold_ == Hold::kEarlierSave && snapshots_.empty()) {
    return ResumeFromHold("the save before has ended");
  }
  const bool waits = hold_ == Hold::kSave || hold_ == Hold::kBest;
  if (phase_ == Phase::kHolding && waits && command.snapshot.lineage == lineage_ &&
      command.snapshot.step == position_.step) {
    ResumeFromHold(command.published ? "the save is published" : "the save was abandoned");
  }
}

void SessionCore::DropKeptCopies(const std::vector<SnapshotId>& copies, const std::string& reason) {
  for (const SnapshotId& copy : copies) Emit(DropKept{copy, reason});
}

void SessionCore::Obey(const ChiefFence&, const ReturnTo& command) {
  const KeptCopies::Copy* const copy = kept_.Find(command.state.position, command.state.digest);
  const bool meets = Meets();  // at rest for the chief
  if (phase_ != Phase::kIdle && !meets) return Tell(Returned{command.state, false, "this worker is busy"});
  if (copy == nullptr) return Tell(Returned{command.state, false, "this copy is not held here"});
  if (has_state_ && lineage_ == command.lineage && position_ > command.state.position) {
    return Tell(Returned{command.state, false,
                         absl::StrCat("it would go back from ", position_.ToString(), " to ",
                                      command.state.position.ToString(), " within its lineage")});
  }
  if (meets) {
    Emit(AbortCollectives{membership_.generation(), "all go back"});
    Park();
  }
  phase_ = Phase::kReturning;
  returning_ = command;
  stop_limit_ = now_ + kReturnLimit;
  Emit(TakeUpKept{copy->id, absl::StrCat("all go back to ", command.state.position.ToString())});
}

void SessionCore::On(const KeptTakenUp& event) {
  if (phase_ != Phase::kReturning) return;
  phase_ = Phase::kIdle;
  stop_limit_ = absl::InfiniteFuture();
  parked_since_ = idle_since_ = now_;
  const KeptCopies::Copy* const copy = kept_.Find(event.copy);
  const bool done = event.message.empty() && copy != nullptr;
  if (done) {
    has_state_ = true;
    published_ = false;
    lineage_ = returning_.lineage;
    position_ = copy->state.position;
    progress_ = copy->progress;
    reports_.Clear();
    evaluations_.GoBackTo(position_.step, lineage_);
    DropKeptCopies(kept_.GoBackTo(position_.step, lineage_), "the job went back to before it");
  } else if (copy != nullptr) {
    Emit(DropKept{event.copy, event.message});
    kept_.Remove(event.copy);
  }
  Tell(Returned{returning_.state, done, event.message});
  if (link_.hello_waits()) SayHello();
}

}  // namespace lockstep::worker
