#include "chief/core/checkpoint_tracker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::chief {

CheckpointTracker::Save* CheckpointTracker::Find(const SnapshotId& snapshot) {
  const auto it = saves_.find(KeyOf(snapshot));
  return it == saves_.end() ? nullptr : &it->second;
}

CheckpointTracker::Save* CheckpointTracker::InStorage(const SnapshotId& stored_as) {
  for (auto& [key, save] : saves_) {
    if (save.stage != Stage::kWaiting && save.stored_as == stored_as) return &save;
  }
  return nullptr;
}

CheckpointTracker::Save* CheckpointTracker::Current(absl::Time now) {
  Save* next = nullptr;
  for (auto& [key, save] : saves_) {
    if (save.stage != Stage::kWaiting) return &save;
    if (next == nullptr || (now < NotBefore(*next) && now >= NotBefore(save))) next = &save;
  }
  return next;
}

bool CheckpointTracker::MakeRoom(uint64_t step, Outbox& out, Roster& roster) {
  if (saves_.size() < kMaxHeldSnapshots) return true;
  const auto first = [this](const auto& gives_way) {
    return std::find_if(saves_.begin(), saves_.end(), [&](const auto& entry) {
      return entry.second.stage == Stage::kWaiting && gives_way(entry.second);
    });
  };
  auto found = first([](const Save& save) { return !save.insist; });
  if (found == saves_.end()) found = first([step](const Save& save) { return save.id.step < step; });
  if (found == saves_.end()) return false;
  Tell(found->second, false, "too many saves wait", out, roster);
  saves_.erase(found);
  return true;
}

std::string CheckpointTracker::Taken(const Incarnation& holder, const SnapshotTaken& taken, bool evaluated,
                                     const std::vector<Incarnation>& members, bool audits, Outbox& out,
                                     Roster& roster) {
  const SnapshotId& snapshot = taken.snapshot;
  if (snapshot.step == published_.step && !IsPublished(snapshot)) {
    return absl::StrCat("its state at step ", snapshot.step, " has digest ", snapshot.digest,
                        ", the published one has ", published_.digest);
  }
  for (const auto& [key, other] : saves_) {
    if (other.id.step != snapshot.step || other.id.lineage != snapshot.lineage) continue;
    if (other.id.digest == snapshot.digest) continue;
    return absl::StrCat("its state at step ", snapshot.step, " has digest ", snapshot.digest,
                        ", that of another replica ", other.id.digest);
  }
  if (Find(snapshot) == nullptr) {
    if (!MakeRoom(snapshot.step, out, roster)) {
      out.Command(*roster.Find(holder), Generation(), SnapshotEnded{snapshot, false}, "too many saves wait");
      return "";
    }
    Save added;
    added.id = snapshot;
    added.generation = taken.generation;
    added.audits = audits;
    added.members.insert(members.begin(), members.end());
    added.shares.resize(std::max<size_t>(members.size(), 1) + (rules_.frozen_share ? 1 : 0));
    for (size_t i = 0; i < members.size(); ++i) added.shares[i].preferred = members[i];
    saves_.emplace(KeyOf(snapshot), std::move(added));
  }
  Save& save = *Find(snapshot);
  save.insist = save.insist || rules_.insists || taken.cause != SnapshotCause::kDue;
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
  for (auto& [key, save] : saves_) save.not_expected.insert(member);
}

void CheckpointTracker::HolderGone(const Incarnation& holder) {
  for (auto& [key, save] : saves_) {
    save.holders.erase(holder);
    save.not_expected.insert(holder);
    for (Share& share : save.shares) {
      if (share.asked == holder) share.asked = Incarnation();
    }
  }
}

void CheckpointTracker::Stored(const ShareStored& event) {
  Save* save = InStorage(event.snapshot);
  if (save == nullptr || save->stage != Stage::kCollecting || event.shares != save->shares.size()) return;
  if (event.share >= save->shares.size()) return;
  save->shares[event.share].stored = true;
  save->shares[event.share].awaits_storage = false;
}

void CheckpointTracker::FrozenMissing(const FrozenShareMissing& event) {
  Save* save = InStorage(event.snapshot);
  if (save != nullptr && save->stage == Stage::kCollecting) save->shares.back().awaits_storage = false;
}

void CheckpointTracker::Broken(const ShareBroken& event, Outbox& out, Roster& roster) {
  Save* save = InStorage(event.snapshot);
  if (save == nullptr || save->stage != Stage::kCollecting || event.share >= save->shares.size()) return;
  Share& share = save->shares[event.share];
  if (share.stored) return;  // by another upload of it, whose bytes were all compared
  share.failed.insert(event.sender);
  if (event.wrong) share.wrong = event.message;
  if (share.asked != event.sender) return;  // the last bytes of one that died; another is at it
  share.asked = Incarnation();
  const Worker* const sender = roster.Find(event.sender);
  const std::string from = sender == nullptr ? "" : absl::StrCat(" from ", sender->name(), " on ", sender->host);
  out.Say(Level::kWarning, absl::StrCat("share ", event.share + 1, " of ", save->shares.size(), " of ",
                                        event.snapshot.ToString(), from, " was broken: ", event.message));
}

bool CheckpointTracker::Failed(const Incarnation& holder, const ShareFailed& message) {
  Save* save = Find(message.snapshot);
  if (save == nullptr || message.share >= save->shares.size()) return false;
  Share& share = save->shares[message.share];
  share.failed.insert(holder);
  if (message.gone) save->holders.erase(holder);
  if (share.asked != holder) return false;
  share.asked = Incarnation();
  return save->stage == Stage::kCollecting;
}

void CheckpointTracker::ManifestDone(const ManifestStored& event, const Context& context, Outbox& out, Roster& roster) {
  Save* save = InStorage(event.snapshot);
  if (save == nullptr || save->stage != Stage::kStoring) return;
  if (event.recomputed != save->id.digest) {
    const std::string what = absl::StrCat("the shards received give digest ", event.recomputed,
                                          ", the replicas announced ", save->id.digest);
    StorageRefused(StorageFailed{event.snapshot, what, /*may_pass=*/false}, context, out, roster);
    return;
  }
  if (IsSuperseded(*save, context)) {
    // Meanwhile a newer one was published, or survivors went on from an earlier step: it must not become the newest.
    const std::string why = "superseded";
    out.Add(AbandonSave{save->id, why});
    Tell(*save, IsPublished(save->id), why, out, roster);
    saves_.erase(KeyOf(save->id));
    return;
  }
  save->stage = Stage::kPublishing;
  out.Add(PublishCommit{save->id, "every shard is stored and the digest holds"});
}

bool CheckpointTracker::PublishDone(const SnapshotId& snapshot, absl::Time now, Outbox& out, Roster& roster) {
  Save* save = InStorage(snapshot);
  if (save == nullptr || save->stage != Stage::kPublishing) return false;
  published_ = snapshot;
  published_is_lost_ = false;
  published_evaluated_ = save->written_evaluated;
  published_ledger_ = save->written_ledger;
  abandoned_in_a_row_ = 0;
  damaged_in_a_row_ = 0;
  said_that_members_wait_ = false;
  if (const absl::Duration refused = trouble_.Worked(now); refused > absl::ZeroDuration()) {
    out.Say(Level::kInfo, absl::StrCat("the storage works again: ", snapshot.ToString(),
                                       " is published; it had refused for ", absl::FormatDuration(refused)));
  }
  if (save->evaluated && !save->written_evaluated) {
    save->stage = Stage::kWaiting;  // evaluated since its manifest was stored: amended next
    return true;
  }
  Tell(*save, true, "published", out, roster);
  saves_.erase(KeyOf(save->id));
  return true;
}

bool CheckpointTracker::IsSuperseded(const Save& save, const Context& context) const {
  return !IsNewer(save.id.step) || !context.history.Includes(save.id.lineage, save.id.step);
}

bool CheckpointTracker::Completes(const Save& save, const Context& context) const {
  return IsPublished(save.id) && save.evaluated && !published_evaluated_ &&
         context.history.Includes(save.id.lineage, save.id.step);
}

bool CheckpointTracker::IsHeldAnew(const Save& save) const {
  return std::any_of(saves_.begin(), saves_.end(), [&](const auto& entry) {
    const Save& other = entry.second;
    if (other.id.step != save.id.step || other.id.digest != save.id.digest || other.holders.empty()) return false;
    return other.evaluated >= save.evaluated && other.insist >= save.insist &&
           BegunBy(save.id.lineage) < BegunBy(other.id.lineage);
  });
}

void CheckpointTracker::DropSuperseded(const Context& context, Outbox& out, Roster& roster) {
  for (auto it = saves_.begin(); it != saves_.end();) {
    Save& save = it->second;
    const bool called_back = save.stage == Stage::kWaiting || save.stage == Stage::kCollecting;
    if (save.stage == Stage::kWaiting && IsHeldAnew(save)) {
      Tell(save, false, "a newer lineage holds the same state", out, roster);
      it = saves_.erase(it);
      continue;
    }
    if (!called_back || !IsSuperseded(save, context)) {
      ++it;
      continue;
    }
    // A newer one may have been published while this one was being collected: it must not become the newest again.
    if (save.stage == Stage::kCollecting) out.Add(AbandonSave{save.id, "superseded"});
    save.stage = Stage::kWaiting;
    if (Completes(save, context)) {
      ++it;
      continue;
    }
    Tell(save, IsPublished(save.id), "superseded", out, roster);
    it = saves_.erase(it);
  }
}

void CheckpointTracker::Advance(const Context& context, Outbox& out, Roster& roster) {
  DropSuperseded(context, out, roster);
  while (Save* const current = Current(context.now)) {
    Save& save = *current;
    if (save.stage == Stage::kWaiting && IsSuperseded(save, context)) {
      if (context.now < NotBefore(save)) return;
      save.stage = Stage::kPublishing;
      save.opened = context.now;
      save.stored_as = published_;
      WriteAs(save);
      out.Add(AmendManifest{published_, save.ledger, "the evaluation of the published state is done"});
      return;
    }
    if (save.stage == Stage::kWaiting) {
      if (context.now < NotBefore(save)) return;
      Open(save, context, out);
    }
    if (save.stage != Stage::kCollecting) return;
    const bool complete =
        std::all_of(save.shares.begin(), save.shares.end(), [](const Share& share) { return share.stored; });
    if (complete) {
      save.stage = Stage::kStoring;
      const bool audited = save.audits && std::includes(save.reported.begin(), save.reported.end(),
                                                        save.members.begin(), save.members.end());
      std::vector<Incarnation> by_rank;
      for (const Share& share : save.shares) {
        if (!share.preferred.IsNone()) by_rank.push_back(share.preferred);
      }
      out.Add(StoreManifest{save.id, static_cast<uint32_t>(save.shares.size()), context.plan_hash, audited,
                            save.evaluated, save.ledger, context.trained_for, context.audit_floor, std::move(by_rank),
                            "it is complete"});
      WriteAs(save);
      return;
    }
    AskShares(save, context, out, roster);
    const bool hopeless = std::any_of(save.shares.begin(), save.shares.end(), [&](const Share& share) {
      return !share.stored && !share.awaits_storage && share.asked.IsNone() &&
             ChooseSender(save, share, absl::InfiniteFuture(), roster).IsNone();
    });
    if (!hopeless) return;
    const auto wrong = std::find_if(save.shares.begin(), save.shares.end(),
                                    [](const Share& share) { return !share.stored && !share.wrong.empty(); });
    if (wrong != save.shares.end()) CountDamage(save.id, wrong->wrong);
    const bool again = save.insist && !save.holders.empty();
    Abandon(save, "no worker that holds this snapshot can send a missing share", again, context.now, out, roster);
  }
}

void CheckpointTracker::Open(Save& save, const Context& context, Outbox& out) {
  save.stage = Stage::kCollecting;
  save.opened = context.now;
  save.awaited_until = std::min(save.awaited_until, context.now + kShareWait);
  save.said_slow = absl::ZeroDuration();
  save.stored_as = save.id;
  for (Share& share : save.shares) share = Share{.preferred = share.preferred};
  save.shares.back().awaits_storage = rules_.frozen_share;
  out.Add(OpenSave{save.id, static_cast<uint32_t>(save.shares.size()),
                   absl::StrCat("a snapshot of ", save.id.ToString(), " was taken")});
}

void CheckpointTracker::AskShares(Save& save, const Context& context, Outbox& out, Roster& roster) {
  for (uint32_t i = 0; i < save.shares.size(); ++i) {
    Share& share = save.shares[i];
    if (share.stored || share.awaits_storage || !share.asked.IsNone()) continue;
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
  if (now < save.awaited_until && MayReport(save, roster.Find(share.preferred))) return Incarnation();
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

absl::Time CheckpointTracker::NextDeadline(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  const auto at = [&](absl::Time when) {
    if (when > now) next = std::min(next, when);
  };
  for (const auto& [key, save] : saves_) {
    if (save.stage == Stage::kWaiting) at(NotBefore(save));
    if (save.stage == Stage::kCollecting) at(save.awaited_until);
  }
  return next;
}

void CheckpointTracker::ShiftDeadlines(absl::Duration gap) {
  trouble_.ShiftDeadlines(gap);
  for (auto& [key, save] : saves_) {
    save.opened += gap;
    save.awaited_until += gap;
    save.not_before += gap;
  }
}

void CheckpointTracker::SayWhatIsSlow(absl::Time now, Outbox& out, Roster& roster) {
  for (auto& [key, save] : saves_) {
    if (save.stage == Stage::kWaiting || now - save.opened < std::max(kSlowSave, 2 * save.said_slow)) continue;
    save.said_slow = now - save.opened;
    std::set<std::string> senders;
    for (const Share& share : save.shares) {
      const Worker* sender = share.stored ? nullptr : roster.Find(share.asked);
      if (sender != nullptr) senders.insert(sender->name());
    }
    const std::string waits_for =
        save.stage == Stage::kCollecting
            ? absl::StrCat("shares of ", absl::StrJoin(senders, ", "))
            : "the storage, which does not answer: look at the file system of the job's directory";
    out.Say(Level::kWarning,
            absl::StrCat("the save of ", save.id.ToString(), " has waited ",
                         absl::FormatDuration(absl::Trunc(save.said_slow, absl::Seconds(1))), " for ", waits_for));
  }
}

bool CheckpointTracker::Insists() const {
  return std::any_of(saves_.begin(), saves_.end(), [](const auto& entry) { return entry.second.insist; });
}

bool CheckpointTracker::Saving(uint64_t step) const {
  return std::any_of(saves_.begin(), saves_.end(), [&](const auto& entry) {
    const Save& save = entry.second;
    return save.id.step >= step && (!save.holders.empty() || save.stage >= Stage::kStoring);
  });
}

bool CheckpointTracker::PublishesBeyond(uint64_t step) const {
  return std::any_of(saves_.begin(), saves_.end(), [&](const auto& entry) {
    return entry.second.id.step > step && entry.second.stage == Stage::kPublishing;
  });
}

bool CheckpointTracker::Holds(const Incarnation& holder, uint64_t step) const {
  return std::any_of(saves_.begin(), saves_.end(), [&](const auto& entry) {
    return entry.second.id.step == step && entry.second.holders.count(holder) != 0;
  });
}

}  // namespace lockstep::chief
