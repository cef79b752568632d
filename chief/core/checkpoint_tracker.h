// The saves on their way from replicas to the storage, one at a time, each through
//
//   1 waiting ──▶ 2 collecting ──▶ 3 storing ──▶ 4 publishing ──▶ published
//      ▲   OpenSave, AskShare…   StoreManifest   PublishCommit
//      └───────────┴──────────────────┴───── abandoned: a save that is insisted on tries again; another is dropped
//
// A storage that refuses for a while ends nothing: saves that members wait for are tried until it takes them, and of
// the others a fresh one is due at each attempt.
//
// A published state whose evaluation ends later goes from waiting to publishing at once, by AmendManifest.
//
// A state is its step and its bits. Where every generation has a lineage of its own, one state may be held under
// several lineages: each is a save of its own until the first of them is published, which settles the others. Of those
// that wait, the newest lineage's is enough.
//
// Invariants
//   * PublishCommit{s} is emitted only after ManifestStored{s} came in with the digest that the replicas announced.
//   * It is emitted only while the history includes s.
//   * Shares are fixed when the save opens; whoever holds the same snapshot may send any of them (rule 19).
//   * Every holder hears how its save ended, except the one that is lost.
//   * No worker is asked for the frozen share, the last one of a job that has it, before the storage has said that it
//     has no such tensors.
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_CHECKPOINT_TRACKER_H_
#define LOCKSTEP_CHIEF_CORE_CHECKPOINT_TRACKER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/audit_floor.h"
#include "chief/core/events.h"
#include "chief/core/history.h"
#include "chief/core/outbox.h"
#include "chief/core/policy.h"
#include "chief/core/roster.h"
#include "chief/core/storage_trouble.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

class CheckpointTracker {
 public:
  static constexpr uint32_t kAbandonedBeforeHold = 2;  // rule 19
  static constexpr uint32_t kDamagedBeforeEnd = 3;     // saves in a row that were not what was announced
  // For members that have not reported a snapshot yet, once for each save.
  static constexpr absl::Duration kShareWait = absl::Seconds(10);
  static constexpr absl::Duration kRetry = absl::Seconds(1);
  static constexpr absl::Duration kSlowSave = absl::Seconds(30);  // people hear of a save that takes longer

  struct Rules {
    bool frozen_share = false;  // saves have one more share, of tensors that the storage may have already
    bool insists = false;       // every save is tried until the storage takes it, as if members waited for it
  };

  explicit CheckpointTracker(const RecoveredState& recovered) : CheckpointTracker(recovered, Rules()) {}
  CheckpointTracker(const RecoveredState& recovered, const Rules& rules)
      : rules_(rules),
        published_(recovered.checkpoint),
        published_evaluated_(recovered.evaluated),
        published_ledger_(recovered.ledger) {}

  // What the actions need to know beside the save.
  struct Context {
    absl::Time now;
    std::string plan_hash;
    absl::Duration trained_for;
    const History& history;
    uint64_t audit_floor = AuditFloor::kNone;
  };

  // `holder` has this snapshot. `evaluated`: no evaluation is due at its step that was not completed; only a state
  // saved at rest may be without. `ledger` counts that evaluation if it was completed. `members`: of its generation, in
  // rank order: share i is asked of member i first; with `audits` the state is audited once all of them have reported
  // it. Returns what is wrong: another digest of the same step of the same lineage or of the published step (the
  // snapshot is then not used), or the same evaluations with other results. REQUIRES: the history includes the
  // snapshot.
  std::string Taken(const Incarnation& holder, const SnapshotTaken& taken, bool evaluated,
                    const std::vector<Incarnation>& members, bool audits, Outbox& out, Roster& roster);
  // This member, which may still run its generation, will not report a snapshot (any more): its share is asked of
  // another.
  void NotExpected(const Incarnation& member);
  void HolderGone(const Incarnation& holder);

  void Stored(const ShardStored& event);
  // The storage has no frozen tensors to take over: workers have to send them.
  void FrozenMissing(const FrozenShareMissing& event);
  void Broken(const ShardBroken& event, Outbox& out, Roster& roster);
  // True when the share was awaited of this holder. Who says that its snapshot is gone is a holder no longer.
  bool Failed(const Incarnation& holder, const ShareFailed& message);
  void ManifestDone(const ManifestStored& event, const Context& context, Outbox& out, Roster& roster);
  // True when this is the save that was awaited (not a repetition).
  bool PublishDone(const SnapshotId& snapshot, absl::Time now, Outbox& out, Roster& roster);
  void StorageRefused(const StorageFailed& event, const Context& context, Outbox& out, Roster& roster);

  // Gives up every save but one whose commit is under way. True: none is left.
  bool AbandonAll(const std::string& why, Outbox& out, Roster& roster);
  // The job went back to this checkpoint. REQUIRES: AbandonAll has left none.
  void GoBack(const RepairRecorded& repair);

  // Does what can be done now: opens the next save, asks for shares, stores, gives up.
  void Advance(const Context& context, Outbox& out, Roster& roster);
  // When Advance could do something without an event: later than `now`, which Advance has seen.
  absl::Time NextDeadline(absl::Time now) const;
  void ShiftDeadlines(absl::Duration gap);
  // Names a save that takes long, now and then.
  void SayWhatIsSlow(absl::Time now, Outbox& out, Roster& roster);

  const SnapshotId& published() const { return published_; }
  // Whether the evaluation that is due at the published step was completed.
  bool published_evaluated() const { return published_evaluated_; }
  const EvaluationLedger& published_ledger() const { return published_ledger_; }
  // Is `step` of the current history beyond what is published?
  bool IsNewer(uint64_t step) const {
    return step > published_.step || (published_is_lost_ && step == published_.step);
  }
  // States of the current history from this step on are beyond what is published.
  uint64_t FirstUnsaved() const { return published_.step + (published_is_lost_ ? 0 : 1); }
  bool Busy() const { return !saves_.empty(); }
  bool MustHold() const { return abandoned_in_a_row_ >= kAbandonedBeforeHold; }
  // Is there a save of `snapshot.step` or later that can still succeed?
  bool Saving(uint64_t step) const;
  // Is a commit of a step beyond this one under way? It cannot be called back.
  bool PublishesBeyond(uint64_t step) const;
  bool Holds(const Incarnation& holder, uint64_t step) const;
  // A save was refused for a while, none is under way, and another attempt is due.
  bool RetryDue(absl::Time now) const { return trouble_.active() && saves_.empty() && now >= trouble_.retry_at(); }
  // What the storage refuses; empty while it works.
  std::string TroubleText(absl::Time now) const { return trouble_.Text(now); }
  // Whether somebody waits for a save.
  bool Insists() const;
  // Attempts that were given up, by the storage or as their holders were lost.
  uint64_t failed() const { return failed_; }
  // Not empty: what is stored is not what was announced, again and again; end the job.
  const std::string& storage_verdict() const { return storage_verdict_; }

 private:
  enum class Stage : uint8_t { kWaiting, kCollecting, kStoring, kPublishing };
  struct Share {
    Incarnation preferred;
    Incarnation asked;  // none: not asked
    bool stored = false;
    bool awaits_storage = false;   // frozen: the storage has not said yet whether it has it
    std::set<Incarnation> failed;  // who could not send it
    std::string wrong = {};        // what was wrong with the bytes of one of them; empty: nothing
  };
  struct Save {
    SnapshotId id;         // as its holders know it
    SnapshotId stored_as;  // as the storage knows it, from the opening on: an amended one has an older lineage
    Stage stage = Stage::kWaiting;
    Generation generation;  // that took it
    bool insist = false;
    bool audits = false;  // all members having reported it makes it an audited state
    bool evaluated = false;
    EvaluationLedger ledger;
    bool written_evaluated = false;  // what the manifest says that is being stored
    EvaluationLedger written_ledger;
    std::vector<Share> shares;
    std::set<Incarnation> holders;
    std::set<Incarnation> reported;      // ever
    std::set<Incarnation> members;       // of its generation
    std::set<Incarnation> not_expected;  // of them
    absl::Time not_before = absl::InfinitePast();
    absl::Time awaited_until = absl::InfiniteFuture();  // members that have not reported it
    absl::Time opened;
    absl::Duration said_slow;  // after so long people heard of it
  };

  using Key = std::pair<uint64_t, SnapshotId>;
  static Key KeyOf(const SnapshotId& snapshot) { return {snapshot.step, snapshot}; }

  // As its holders know it; null when there is none.
  Save* Find(const SnapshotId& snapshot);
  // The one under way that the storage knows under this name; null when there is none.
  Save* InStorage(const SnapshotId& stored_as);
  // The one that is under way, else the first of the lowest step that may be opened by now, else the first that may be
  // later; null when there is none. One that fails again and again holds up no other.
  Save* Current(absl::Time now);
  bool IsPublished(const SnapshotId& snapshot) const {
    return snapshot.step == published_.step && snapshot.digest == published_.digest;
  }
  absl::Time NotBefore(const Save& save) const { return std::max(save.not_before, trouble_.retry_at()); }
  bool IsSuperseded(const Save& save, const Context& context) const;
  // Whether it brings the published state the evaluation that its manifest lacks.
  bool Completes(const Save& save, const Context& context) const;
  // Whether holders of a newer lineage have the same state: while the storage refuses, generation after generation may
  // take a snapshot of one step.
  bool IsHeldAnew(const Save& save) const;
  void DropSuperseded(const Context& context, Outbox& out, Roster& roster);
  // Room for a save of `step`: false when every other one that waits is insisted on, and none is of an older step. Of
  // an older step nobody waits any more: the job went on from it.
  bool MakeRoom(uint64_t step, Outbox& out, Roster& roster);
  static void WriteAs(Save& save) {
    save.written_evaluated = save.evaluated;
    save.written_ledger = save.ledger;
  }
  void Open(Save& save, const Context& context, Outbox& out);
  void AskShares(Save& save, const Context& context, Outbox& out, Roster& roster);
  // Whether this member, null when it is not here, may still report the snapshot: it runs the generation that took it,
  // or was asked for it at rest.
  static bool MayReport(const Save& save, const Worker* member) {
    if (member == nullptr || save.holders.count(member->id()) != 0) return false;
    if (save.not_expected.count(member->id()) != 0) return false;
    if (member->AtRest()) return member->rest_asked.has_value() && member->rest_asked->step == save.id.step;
    return member->busy == save.generation && save.reported.count(member->id()) == 0;
  }
  Incarnation ChooseSender(const Save& save, const Share& share, absl::Time now, Roster& roster) const;
  // Another save of which not all bytes are what was announced.
  void CountDamage(const SnapshotId& snapshot, const std::string& what);
  void Abandon(Save& save, const std::string& why, bool again, absl::Time now, Outbox& out, Roster& roster);
  void Tell(const Save& save, bool published, const std::string& why, Outbox& out, Roster& roster);

  const Rules rules_;
  SnapshotId published_;
  bool published_is_lost_ = false;  // it cannot be amended: its files are gone
  bool published_evaluated_ = true;
  EvaluationLedger published_ledger_;
  std::map<Key, Save> saves_;  // at most kMaxHeldSnapshots, one of them under way
  uint64_t failed_ = 0;
  uint32_t abandoned_in_a_row_ = 0;
  uint32_t damaged_in_a_row_ = 0;
  StorageTrouble trouble_;
  bool said_that_members_wait_ = false;
  std::string storage_verdict_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_CHECKPOINT_TRACKER_H_
