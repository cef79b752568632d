// The saves on their way from replicas to the storage. One save at a time is under way; each passes through
//
//   1 waiting ──▶ 2 collecting ──▶ 3 storing ──▶ 4 publishing ──▶ published
//      ▲   OpenSave, AskShare…   StoreManifest   PublishCommit
//      └───────────┴──────────────────┴───── abandoned: a save that is insisted on tries again; another is dropped
//
// A storage that refuses for a while does not end the job. Saves that members wait for are retried until the storage
// accepts them; the others are dropped, and each attempt saves a newer state instead.
//
// A published state whose evaluation ends later goes from waiting straight to publishing, by AmendManifest.
//
// A state is identified by its step and its bits. Where every generation has a lineage of its own, one state may be
// held under several lineages. Each is a separate save until one of them is published, which settles the others. Of
// those that wait, only the one of the newest lineage is kept.
//
// Invariants
//   * PublishCommit{s} is emitted only after ManifestStored{s} came in with the digest that the replicas announced.
//   * It is emitted only while the history includes s.
//   * The first report of a snapshot fixes the division into shares; any holder of it may send any share (rule 19).
//   * Every connected holder is told how its save ended.
//   * In a job with frozen tensors, their share is the last one. No worker is asked for it before the storage has said
//     that it lacks them.
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
  // After this many abandoned saves in a row, members wait until the next one is published (rule 19).
  static constexpr uint32_t kAbandonedBeforeHold = 2;
  static constexpr uint32_t kDamagedBeforeEnd = 3;  // saves in a row whose bytes were not what was announced
  // How long a save waits for the reports of members before another holder is asked for their shares.
  static constexpr absl::Duration kShareWait = absl::Seconds(10);
  static constexpr absl::Duration kRetry = absl::Seconds(1);
  static constexpr absl::Duration kSlowSave = absl::Seconds(30);  // people hear of a save that takes longer

  struct Rules {
    bool frozen_share = false;  // saves have one more share, of frozen tensors, which the storage may have already
    bool insists = false;       // every save is retried until the storage takes it, as if members waited for it
  };

  explicit CheckpointTracker(const RecoveredState& recovered) : CheckpointTracker(recovered, Rules()) {}
  CheckpointTracker(const RecoveredState& recovered, const Rules& rules)
      : rules_(rules),
        published_(recovered.checkpoint),
        published_evaluated_(recovered.evaluated),
        published_ledger_(recovered.ledger) {}

  // The facts beside the save that actions and decisions need.
  struct Context {
    absl::Time now;
    std::string plan_hash;
    absl::Duration trained_for;
    const History& history;
    uint64_t audit_floor = AuditFloor::kNone;
  };

  // `holder` has this snapshot. `evaluated`: no evaluation is due at its step, or it was completed; false is possible
  // only for a state saved at rest. `ledger` counts that evaluation if it was completed. `members`: the members of its
  // generation in rank order; member i is asked first for share i. `audits`: the state counts as audited once all of
  // them have reported it. Returns what is wrong, or an empty string: another digest of the same step of the same
  // lineage or of the published step (the snapshot is then not used), or the same evaluations with other results.
  // REQUIRES: the history includes the snapshot.
  std::string Taken(const Incarnation& holder, const SnapshotTaken& taken, bool evaluated,
                    const std::vector<Incarnation>& members, bool audits, Outbox& out, Roster& roster);
  // This member will not report any of the snapshots that are being saved; its shares are asked of other holders.
  void NotExpected(const Incarnation& member);
  void HolderGone(const Incarnation& holder);

  void Stored(const ShareStored& event);
  // The storage lacks the frozen tensors: a worker has to send them.
  void FrozenMissing(const FrozenShareMissing& event);
  void Broken(const ShareBroken& event, Outbox& out, Roster& roster);
  // Returns true if the share was awaited from this holder. A worker whose snapshot is gone no longer counts as a
  // holder.
  bool Failed(const Incarnation& holder, const ShareFailed& message);
  void ManifestDone(const ManifestStored& event, const Context& context, Outbox& out, Roster& roster);
  // Returns true if this publication was awaited, false for a repetition.
  bool PublishDone(const SnapshotId& snapshot, absl::Time now, Outbox& out, Roster& roster);
  void StorageRefused(const StorageFailed& event, const Context& context, Outbox& out, Roster& roster);

  // Abandons every save except one whose commit is under way. Returns true if none is left.
  bool AbandonAll(const std::string& why, Outbox& out, Roster& roster);
  // The job went back to this checkpoint. REQUIRES: AbandonAll has left none.
  void GoBack(const RepairRecorded& repair);

  // Takes every step that is possible now: opens the next save, asks for shares, stores, gives up.
  void Advance(const Context& context, Outbox& out, Roster& roster);
  // The next instant after `now` at which Advance could act without an event.
  absl::Time NextDeadline(absl::Time now) const;
  void ShiftDeadlines(absl::Duration gap);
  // Announces from time to time a save that takes long.
  void SayWhatIsSlow(absl::Time now, Outbox& out, Roster& roster);

  const SnapshotId& published() const { return published_; }
  // Whether the evaluation that is due at the published step was completed.
  bool published_evaluated() const { return published_evaluated_; }
  const EvaluationLedger& published_ledger() const { return published_ledger_; }
  // Whether `step` of the current history is beyond the published one.
  bool IsNewer(uint64_t step) const {
    return step > published_.step || (published_is_lost_ && step == published_.step);
  }
  // The first step of the current history that is beyond the published one.
  uint64_t FirstUnsaved() const { return published_.step + (published_is_lost_ ? 0 : 1); }
  bool Busy() const { return !saves_.empty(); }
  bool MustHold() const { return abandoned_in_a_row_ >= kAbandonedBeforeHold; }
  // Whether a save of `step` or a later one can still succeed.
  bool Saving(uint64_t step) const;
  // Whether a commit of a step beyond this one is under way. It cannot be called back.
  bool PublishesBeyond(uint64_t step) const;
  bool Holds(const Incarnation& holder, uint64_t step) const;
  // Whether the storage refused a save, none is under way, and the next attempt is due.
  bool RetryDue(absl::Time now) const { return trouble_.active() && saves_.empty() && now >= trouble_.retry_at(); }
  // Why the storage refuses, for people; empty while it works.
  std::string TroubleText(absl::Time now) const { return trouble_.Text(now); }
  // Whether members wait for a save.
  bool Insists() const;
  // The number of attempts that failed, because the storage refused or the holders were lost.
  uint64_t failed() const { return failed_; }
  // Why the job must end, because stored bytes were again and again not what was announced; empty if it need not.
  const std::string& storage_verdict() const { return storage_verdict_; }

 private:
  enum class Stage : uint8_t { kWaiting, kCollecting, kStoring, kPublishing };
  struct Share {
    Incarnation preferred;
    Incarnation asked;  // none: nobody is asked
    bool stored = false;
    bool awaits_storage = false;   // the frozen share, while the storage has not said whether it has it
    std::set<Incarnation> failed;  // workers that could not send it
    std::string wrong = {};        // what was wrong with the bytes of one sender; empty: nothing
  };
  struct Save {
    SnapshotId id;         // the name that its holders use
    SnapshotId stored_as;  // the name that the storage uses, once opened; of an amended one it has an older lineage
    Stage stage = Stage::kWaiting;
    Generation generation;  // that took it
    bool insist = false;
    bool audits = false;  // the state is audited once all members have reported it
    bool evaluated = false;
    EvaluationLedger ledger;
    bool written_evaluated = false;  // as in the manifest that is being stored
    EvaluationLedger written_ledger;
    std::vector<Share> shares;
    std::set<Incarnation> holders;
    std::set<Incarnation> reported;      // ever
    std::set<Incarnation> members;       // of its generation
    std::set<Incarnation> not_expected;  // of them
    absl::Time not_before = absl::InfinitePast();
    absl::Time awaited_until = absl::InfiniteFuture();  // until when reports of the other members are awaited
    absl::Time opened;
    absl::Duration said_slow;  // the age of the save at the last announcement that it is slow
  };

  using Key = std::pair<uint64_t, SnapshotId>;
  static Key KeyOf(const SnapshotId& snapshot) { return {snapshot.step, snapshot}; }

  // The save that its holders know under this name; null if there is none.
  Save* Find(const SnapshotId& snapshot);
  // The save under way that the storage knows under this name; null if there is none.
  Save* InStorage(const SnapshotId& stored_as);
  // The save under way; else the one of the lowest step that may be opened by now; else the one of the lowest step.
  // Null if there is none. A save that fails again and again holds up no other.
  Save* Current(absl::Time now);
  bool IsPublished(const SnapshotId& snapshot) const {
    return snapshot.step == published_.step && snapshot.digest == published_.digest;
  }
  absl::Time NotBefore(const Save& save) const { return std::max(save.not_before, trouble_.retry_at()); }
  bool IsSuperseded(const Save& save, const Context& context) const;
  // Whether the save has the evaluation that the published manifest of this state lacks.
  bool Completes(const Save& save, const Context& context) const;
  // Whether the same state waits under a newer lineage. While the storage refuses, successive generations may take a
  // snapshot of one step.
  bool IsHeldAnew(const Save& save) const;
  void DropSuperseded(const Context& context, Outbox& out, Roster& roster);
  // Makes room for a save of `step`, at the expense of a waiting one that nobody insists on, or else of an older step:
  // the job went on from that, so no member waits for it. Returns false if there is none.
  bool MakeRoom(uint64_t step, Outbox& out, Roster& roster);
  static void WriteAs(Save& save) {
    save.written_evaluated = save.evaluated;
    save.written_ledger = save.ledger;
  }
  void Open(Save& save, const Context& context, Outbox& out);
  void AskShares(Save& save, const Context& context, Outbox& out, Roster& roster);
  // Whether this member may still report the snapshot: it runs the generation that took it, or was asked for it at
  // rest. `member` may be null.
  static bool MayReport(const Save& save, const Worker* member) {
    if (member == nullptr || save.holders.count(member->id()) != 0) return false;
    if (save.not_expected.count(member->id()) != 0) return false;
    if (member->AtRest()) return member->rest_asked.has_value() && member->rest_asked->step == save.id.step;
    return member->busy == save.generation && save.reported.count(member->id()) == 0;
  }
  Incarnation ChooseSender(const Save& save, const Share& share, absl::Time now, Roster& roster) const;
  // Counts a save whose bytes were not what was announced.
  void CountDamage(const SnapshotId& snapshot, const std::string& what);
  void Abandon(Save& save, const std::string& why, bool again, absl::Time now, Outbox& out, Roster& roster);
  void Tell(const Save& save, bool published, const std::string& why, Outbox& out, Roster& roster);

  const Rules rules_;
  SnapshotId published_;
  bool published_is_lost_ = false;  // its files are gone, so it cannot be amended
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
