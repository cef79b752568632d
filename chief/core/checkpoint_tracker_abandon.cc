// CheckpointTracker: saves that the storage refuses or that are given up, and what their holders hear.
#include "absl/strings/str_cat.h"
#include "chief/core/checkpoint_tracker.h"

namespace lockstep::chief {

void CheckpointTracker::Abandon(Save& save, const std::string& why, bool again, absl::Time now, Outbox& out,
                                Roster& roster) {
  ++failed_;
  out.Say(Level::kWarning, absl::StrCat("the save of ", save.id.ToString(), " was abandoned: ", why));
  out.Add(AbandonSave{save.id, why});
  if (again) {
    save.stage = Stage::kWaiting;
    save.not_before = now + kRetry;
    return;
  }
  ++abandoned_in_a_row_;
  Tell(save, false, why, out, roster);
  saves_.erase(KeyOf(save.id));
}

void CheckpointTracker::CountDamage(const SnapshotId& snapshot, const std::string& what) {
  if (++damaged_in_a_row_ < kDamagedBeforeEnd) return;
  storage_verdict_ =
      absl::StrCat("saving ", snapshot.ToString(), " failed ", damaged_in_a_row_, " times in a row: ", what,
                   ". The last published checkpoint is step ", published_.step, "; nothing of it was touched.");
}

void CheckpointTracker::StorageRefused(const StorageFailed& event, const Context& context, Outbox& out,
                                       Roster& roster) {
  Save* save = InStorage(event.snapshot);
  // One error of the disk reaches every sender of a share: it counts once, and the save waits already.
  if (save == nullptr) return;
  if (!event.may_pass && save->stage == Stage::kPublishing && IsPublished(save->id) && !published_is_lost_) {
    out.Say(Level::kWarning, absl::StrCat("the evaluation of ", published_.ToString(), " cannot be added to it: ",
                                          event.message, ". It is saved once more, as a whole"));
    published_is_lost_ = true;
    save->stage = Stage::kWaiting;
    save->not_before = context.now + kRetry;
    return;
  }
  if (!event.may_pass) {
    CountDamage(event.snapshot, event.message);
    return Abandon(*save, event.message, save->insist, context.now, out, roster);
  }
  ++failed_;
  const bool say = trouble_.Refused(context.now, absl::StrCat(save->id.ToString(), " cannot be saved: ", event.message),
                                    save->insist);
  if (say || (save->insist && !said_that_members_wait_)) {
    said_that_members_wait_ = save->insist;
    out.Say(Level::kError,
            absl::StrCat(trouble_.Text(context.now), ". Nothing is lost: ",
                         save->insist ? "the workers wait with their state in memory" : "training goes on",
                         ", the newest checkpoint is step ", published_.step,
                         ", and saving is tried again until the storage takes it"));
  }
  out.Add(AbandonSave{save->stored_as, event.message});
  save->stage = Stage::kWaiting;
  if (save->insist) return;
  // Not worth keeping: by the next attempt there is a newer state.
  Tell(*save, false, "the storage refuses", out, roster);
  saves_.erase(KeyOf(save->id));
}

bool CheckpointTracker::AbandonAll(const std::string& why, Outbox& out, Roster& roster) {
  for (auto it = saves_.begin(); it != saves_.end();) {
    Save& save = it->second;
    if (save.stage == Stage::kPublishing) {
      ++it;
      continue;
    }
    if (save.stage != Stage::kWaiting) out.Add(AbandonSave{save.stored_as, why});
    Tell(save, false, why, out, roster);
    it = saves_.erase(it);
  }
  return saves_.empty();
}

void CheckpointTracker::GoBack(const RepairRecorded& repair) {
  published_ = repair.checkpoint;
  published_is_lost_ = false;
  published_evaluated_ = repair.evaluated;
  published_ledger_ = repair.ledger;
  abandoned_in_a_row_ = 0;
  damaged_in_a_row_ = 0;
}

void CheckpointTracker::Tell(const Save& save, bool published, const std::string& why, Outbox& out, Roster& roster) {
  for (const Incarnation& holder : save.holders) {
    if (Worker* worker = roster.Find(holder)) {
      out.Command(*worker, Generation(), SnapshotEnded{save.id, published}, why);
    }
  }
}

}  // namespace lockstep::chief
