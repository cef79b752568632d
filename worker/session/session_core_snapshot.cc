#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/session/session_core.h"

namespace lockstep::worker {

void SessionCore::StartSnapshot(SnapshotCause cause) {
  for (Snapshot& snapshot : snapshots_) {
    if (snapshot.lineage != lineage_ || snapshot.step != position_.step) continue;
    snapshot.cause = cause;
    snapshot.generation = generation_;
    snapshot.ledger = progress_.ledger;
    if (snapshot.id.has_value()) TellSnapshot(snapshot);
    return;
  }
  if (snapshots_.size() >= kMaxHeldSnapshots) {
    const Snapshot oldest = snapshots_.front();
    snapshots_.erase(snapshots_.begin());
    if (oldest.id.has_value()) Emit(DropSnapshot{*oldest.id, "too many snapshots are held"});
  }
  snapshots_.push_back(Snapshot{lineage_, position_.step, cause, generation_, progress_.ledger, std::nullopt});
  const bool last = cause == SnapshotCause::kEnd || cause == SnapshotCause::kStop;
  Emit(TakeSnapshot{lineage_, position_.step, "a save is due", last});
}

void SessionCore::OnSnapshotDone(const SnapshotDone& event) {
  for (Snapshot& snapshot : snapshots_) {
    if (snapshot.lineage != event.snapshot.lineage || snapshot.step != event.snapshot.step) continue;
    snapshot.id = event.snapshot;
    // Reports speak of the present lineage; of a snapshot that a repair gave up they must not.
    if (snapshot.lineage == lineage_) {
      digests_.push_back(StateDigest{Position{snapshot.step, 0}, event.snapshot.digest});
    }
    FlushReport();
    TellSnapshot(snapshot);
    return;
  }
  Emit(DropSnapshot{event.snapshot, "nobody waits for it any more"});
}

void SessionCore::TellSnapshot(const Snapshot& snapshot) {
  if (link_ == Link::kWelcomed) Tell(SnapshotTaken{snapshot.generation, *snapshot.id, snapshot.cause, snapshot.ledger});
}

void SessionCore::OnTakeSnapshot(const ChiefFence& fence, const lockstep::TakeSnapshot& command) {
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

void SessionCore::OnAskShare(const AskShare& command) {
  for (const Snapshot& snapshot : snapshots_) {
    if (snapshot.id != command.snapshot) continue;
    Emit(UploadShare{WorkerFence{job_, term_, config_.incarnation}, command.snapshot, command.share, command.shares});
    return;
  }
  Tell(ShareFailed{command.snapshot, command.share, command.shares, "this snapshot is not held here", /*gone=*/true});
}

void SessionCore::OnShareFailed(const ShareUploadFailed& event) {
  Tell(ShareFailed{event.snapshot, event.share, event.shares, event.message});
}

void SessionCore::OnSnapshotEnded(const SnapshotEnded& command) {
  for (auto it = snapshots_.begin(); it != snapshots_.end(); ++it) {
    if (it->id != command.snapshot) continue;
    snapshots_.erase(it);
    Emit(DropSnapshot{command.snapshot, command.published ? "published" : "abandoned"});
    break;
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

}  // namespace lockstep::worker
