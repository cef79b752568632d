#include "chief/core/checkpoint_tracker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

CheckpointTracker::Save* CheckpointTracker::Find(const SnapshotId& snapshot) {
  const auto it = saves_.find(snapshot.step);
  return it == saves_.end() || it->second.id != snapshot ? nullptr : &it->second;
}

std::string CheckpointTracker::Taken(const Incarnation& holder, const SnapshotTaken& taken, bool evaluated,
                                     const std::vector<Incarnation>& members, Outbox& out, Roster& roster) {
  const SnapshotId& snapshot = taken.snapshot;
  const bool same_step_published = published_.lineage == snapshot.lineage && published_.step == snapshot.step;
  if (same_step_published && published_.digest != snapshot.digest) {
    return absl::StrCat("its state at step ", snapshot.step, " has digest ", snapshot.digest,
                        ", the published one has ", published_.digest);
  }
  const auto it = saves_.find(snapshot.step);
  if (it != saves_.end() && it->second.id.lineage == snapshot.lineage && it->second.id.digest != snapshot.digest) {
    return absl::StrCat("its state at step ", snapshot.step, " has digest ", snapshot.digest,
                        ", that of another replica ", it->second.id.digest);
  }
  if (it == saves_.end() && saves_.size() >= kMaxHeldSnapshots) return "";
  Save& save = saves_[snapshot.step];
  if (save.id != snapshot) {
    // One state may be saved under two lineages, where one goes on as the other: what is being published stays.
    if (save.stage >= Stage::kStoring) {
      out.Command(*roster.Find(holder), Generation(), SnapshotEnded{snapshot, false}, "that step is being published");
      return "";
    }
    if (save.stage == Stage::kCollecting) out.Add(AbandonSave{save.id, "taken again in a later generation"});
    Tell(save, false, "taken again in a later generation", out, roster);
    save = Save();
    save.id = snapshot;
    save.members.insert(members.begin(), members.end());
    save.shares.resize(std::max<size_t>(members.size(), 1));
    for (size_t i = 0; i < members.size(); ++i) save.shares[i].preferred = members[i];
  }
  save.insist = save.insist || taken.cause != SnapshotCause::kDue;
  if (save.evaluated && evaluated && save.ledger != taken.ledger) {
    return absl::StrCat("the evaluations up to step ", snapshot.step, " gave other results than on another replica");
  }
  if (!save.evaluated) save.ledger = taken.ledger;
  save.evaluated = save.evaluated || evaluated;
  save.holders.insert(holder);
  save.reported.insert(holder);
  return "";
}

void CheckpointTracker::NotExpected(const Incarnation& member) {
  for (auto& [step, save] : saves_) save.not_expected.insert(member);
}

void CheckpointTracker::HolderGone(const Incarnation& holder) {
  for (auto& [step, save] : saves_) {
    save.holders.erase(holder);
    save.not_expected.insert(holder);
    for (Share& share : save.shares) {
      if (share.asked == holder) share.asked = Incarnation();
    }
  }
}

void CheckpointTracker::Stored(const ShardStored& event) {
  Save* save = Find(event.snapshot);
  if (save == nullptr || save->stage != Stage::kCollecting || event.shares != save->shares.size()) return;
  if (event.share < save->shares.size()) save->shares[event.share].stored = true;
}

void CheckpointTracker::Broken(const ShardBroken& event, Outbox& out) {
  Save* save = Find(event.snapshot);
  if (save == nullptr || save->stage == Stage::kPublishing || event.share >= save->shares.size()) return;
  Share& share = save->shares[event.share];
  share.failed.insert(share.asked);
  share.asked = Incarnation();
  share.stored = false;
  if (save->stage == Stage::kStoring) save->stage = Stage::kCollecting;
  out.Say(Level::kWarning, absl::StrCat("share ", event.share + 1, " of ", save->shares.size(), " of ",
                                        event.snapshot.ToString(), " was broken: ", event.message));
}

void CheckpointTracker::Failed(const Incarnation& holder, const ShareFailed& message) {
  Save* save = Find(message.snapshot);
  if (save == nullptr || message.share >= save->shares.size()) return;
  Share& share = save->shares[message.share];
  share.failed.insert(holder);
  if (share.asked == holder) share.asked = Incarnation();
}

void CheckpointTracker::ManifestDone(const ManifestStored& event, const Context& context, Outbox& out, Roster& roster) {
  Save* save = Find(event.snapshot);
  if (save == nullptr || save->stage != Stage::kStoring) return;
  if (event.recomputed != save->id.digest) {
    StorageRefused(event.snapshot,
                   absl::StrCat("the shards received give digest ", event.recomputed, ", the replicas announced ",
                                save->id.digest),
                   context, out, roster);
    return;
  }
  if (!context.history.Includes(save->id.lineage, save->id.step)) {
    // Survivors went on from an earlier step while this one was being stored: it is of a life that is over.
    const std::string why = "what goes on does not contain it";
    out.Add(AbandonSave{save->id, why});
    Tell(*save, false, why, out, roster);
    saves_.erase(event.snapshot.step);
    return;
  }
  save->stage = Stage::kPublishing;
  out.Add(PublishCommit{save->id, "every shard is stored and the digest holds"});
}

bool CheckpointTracker::PublishDone(const SnapshotId& snapshot, Outbox& out, Roster& roster) {
  Save* save = Find(snapshot);
  if (save == nullptr || save->stage != Stage::kPublishing) return false;
  published_ = snapshot;
  published_evaluated_ = save->written_evaluated;
  published_ledger_ = save->written_ledger;
  abandoned_in_a_row_ = 0;
  storage_failures_ = 0;
  if (save->evaluated && !save->written_evaluated) {
    save->stage = Stage::kWaiting;  // evaluated since its manifest was stored: amended next
    return true;
  }
  Tell(*save, true, "published", out, roster);
  saves_.erase(snapshot.step);
  return true;
}

void CheckpointTracker::StorageRefused(const SnapshotId& snapshot, const std::string& message, const Context& context,
                                       Outbox& out, Roster& roster) {
  Save* save = Find(snapshot);
  // One error of the disk reaches every sender of a share: it counts once, and the save waits already.
  if (save == nullptr || save->stage == Stage::kWaiting) return;
  if (++storage_failures_ >= kStorageFailuresBeforeEnd) {
    storage_verdict_ =
        absl::StrCat("saving ", snapshot.ToString(), " failed ", storage_failures_, " times in a row: ", message,
                     ". The last published checkpoint is step ", published_.step, "; nothing of it was touched.");
  }
  Abandon(*save, message, save->insist, context.now, out, roster);
}

void CheckpointTracker::Advance(const Context& context, Outbox& out, Roster& roster) {
  while (!saves_.empty()) {
    Save& save = saves_.begin()->second;
    const bool superseded = !IsNewer(save.id.step) || !context.history.Includes(save.id.lineage, save.id.step);
    if (superseded && (save.stage == Stage::kWaiting || save.stage == Stage::kCollecting)) {
      // A newer one may have been published while this one was being collected: it must not become the newest again.
      if (save.stage == Stage::kCollecting) out.Add(AbandonSave{save.id, "superseded"});
      if (save.id == published_ && save.evaluated && !published_evaluated_) {
        save.stage = Stage::kWaiting;
        if (context.now < save.not_before) return;
        save.stage = Stage::kPublishing;
        WriteAs(save);
        out.Add(AmendManifest{save.id, save.ledger, "the evaluation of the published state is done"});
        return;
      }
      Tell(save, save.id == published_, "superseded", out, roster);
      saves_.erase(saves_.begin());
      continue;
    }
    if (save.stage == Stage::kWaiting) {
      if (context.now < save.not_before) return;
      Open(save, context, out);
    }
    if (save.stage != Stage::kCollecting) return;
    const bool complete =
        std::all_of(save.shares.begin(), save.shares.end(), [](const Share& share) { return share.stored; });
    if (complete) {
      save.stage = Stage::kStoring;
      const bool audited = save.members.size() > 1 && std::includes(save.reported.begin(), save.reported.end(),
                                                                    save.members.begin(), save.members.end());
      out.Add(StoreManifest{save.id, static_cast<uint32_t>(save.shares.size()), context.plan_hash, audited,
                            save.evaluated, save.ledger, context.trained_for, "every share is stored"});
      WriteAs(save);
      return;
    }
    AskShares(save, context, out, roster);
    const bool hopeless = std::any_of(save.shares.begin(), save.shares.end(), [&](const Share& share) {
      return !share.stored && share.asked.IsNone() &&
             ChooseSender(save, share, absl::InfiniteFuture(), roster).IsNone();
    });
    if (!hopeless) return;
    const bool again = save.insist && !save.holders.empty();
    Abandon(save, "no worker that holds this snapshot can send a missing share", again, context.now, out, roster);
  }
}

void CheckpointTracker::Open(Save& save, const Context& context, Outbox& out) {
  save.stage = Stage::kCollecting;
  save.opened = context.now;
  for (Share& share : save.shares) share = Share{share.preferred, Incarnation(), false, {}};
  out.Add(OpenSave{save.id, static_cast<uint32_t>(save.shares.size()),
                   absl::StrCat("a snapshot of ", save.id.ToString(), " was taken")});
}

void CheckpointTracker::AskShares(Save& save, const Context& context, Outbox& out, Roster& roster) {
  for (uint32_t i = 0; i < save.shares.size(); ++i) {
    Share& share = save.shares[i];
    if (share.stored || !share.asked.IsNone()) continue;
    const Incarnation sender = ChooseSender(save, share, context.now, roster);
    if (sender.IsNone()) continue;
    share.asked = sender;
    out.Command(*roster.Find(sender), Generation(), AskShare{save.id, i, static_cast<uint32_t>(save.shares.size())},
                sender == share.preferred ? "its own share" : "the share of another member");
  }
}

Incarnation CheckpointTracker::ChooseSender(const Save& save, const Share& share, absl::Time now,
                                            Roster& roster) const {
  const auto usable = [&](const Incarnation& id) {
    return save.holders.count(id) != 0 && share.failed.count(id) == 0 && roster.Find(id) != nullptr;
  };
  if (usable(share.preferred)) return share.preferred;
  const bool may_still_report = save.holders.count(share.preferred) == 0 &&
                                save.not_expected.count(share.preferred) == 0 &&
                                roster.Find(share.preferred) != nullptr;
  if (may_still_report && now < save.opened + kShareWait) return Incarnation();
  Incarnation best;
  size_t least = 0;
  for (const Incarnation& holder : save.holders) {
    if (!usable(holder)) continue;
    const size_t load = std::count_if(save.shares.begin(), save.shares.end(),
                                      [&](const Share& other) { return other.asked == holder && !other.stored; });
    if (best.IsNone() || load < least) best = holder, least = load;
  }
  return best;
}

void CheckpointTracker::Abandon(Save& save, const std::string& why, bool again, absl::Time now, Outbox& out,
                                Roster& roster) {
  out.Say(Level::kWarning, absl::StrCat("the save of ", save.id.ToString(), " was abandoned: ", why));
  out.Add(AbandonSave{save.id, why});
  if (again) {
    save.stage = Stage::kWaiting;
    save.not_before = now + kStorageRetry;
    return;
  }
  ++abandoned_in_a_row_;
  Tell(save, false, why, out, roster);
  saves_.erase(save.id.step);
}

void CheckpointTracker::Tell(const Save& save, bool published, const std::string& why, Outbox& out, Roster& roster) {
  for (const Incarnation& holder : save.holders) {
    if (Worker* worker = roster.Find(holder)) {
      out.Command(*worker, Generation(), SnapshotEnded{save.id, published}, why);
    }
  }
}

absl::Time CheckpointTracker::NextDeadline() const {
  if (saves_.empty()) return absl::InfiniteFuture();
  const Save& save = saves_.begin()->second;
  if (save.stage == Stage::kWaiting) return save.not_before;
  return save.stage == Stage::kCollecting ? save.opened + kShareWait : absl::InfiniteFuture();
}

void CheckpointTracker::ShiftDeadlines(absl::Duration gap) {
  for (auto& [step, save] : saves_) {
    save.opened += gap;
    save.not_before += gap;
  }
}

bool CheckpointTracker::Saving(uint64_t step) const {
  return std::any_of(saves_.begin(), saves_.end(), [&](const auto& entry) {
    const Save& save = entry.second;
    return entry.first >= step && (!save.holders.empty() || save.stage >= Stage::kStoring);
  });
}

bool CheckpointTracker::PublishesBeyond(uint64_t step) const {
  return std::any_of(saves_.begin(), saves_.end(),
                     [&](const auto& entry) { return entry.first > step && entry.second.stage == Stage::kPublishing; });
}

bool CheckpointTracker::Holds(const Incarnation& holder, uint64_t step) const {
  const auto it = saves_.find(step);
  return it != saves_.end() && it->second.holders.count(holder) != 0;
}

}  // namespace lockstep::chief
