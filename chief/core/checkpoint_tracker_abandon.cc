// CheckpointTracker: saves that are given up, one or all of them, and what their holders hear.
#include "absl/strings/str_cat.h"
#include "chief/core/checkpoint_tracker.h"

namespace lockstep::chief {

void CheckpointTracker::Abandon(Save& save, const std::string& why, bool again, absl::Time now, Outbox& out,
                                Roster& roster) {
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
