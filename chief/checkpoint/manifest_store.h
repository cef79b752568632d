// Publishes saves: the last stage of the data flow. The order of a commit: shards synced (ShardSink) → index, stats,
// job, manifest → fsync of each → fsync of the directory → one rename → fsync of the parent → one record of the commit
// log → `latest` → removal of what retention dropped from the record. In a bucket nothing is renamed: the files lie
// under their final names from the start, and the record alone makes them a checkpoint.
//
// Invariants
//   * A checkpoint's directory appears under its name complete and durable, or not at all.
//   * It counts from the moment at which the log names it, and nothing that a record of the log may still name is
//     removed.
//   * What is published is never changed: Amend replaces a manifest, retention and setting aside move all of it.
//   * Publishing a step that exists with an equal digest succeeds. If it exists with another digest and the same
//     lineage, that is an alarm (DataLoss); one of another lineage is set aside and replaced.
//   * A manifest of an older term that this term did not accept is set aside wherever it appears, and so is a
//     checkpoint without a complete manifest.
//   * A removal renames into staging first, so that a half removed checkpoint never stands under a published name. A
//     checkpoint is removed only if `keep_latest` newer ones are verified, so the last one that verifies is never
//     removed.
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_MANIFEST_STORE_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_MANIFEST_STORE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/checkpoint/retention.h"
#include "chief/checkpoint/shard_sink.h"
#include "chief/term/job_log.h"
#include "chief/term/term_claim.h"
#include "common/protocol/evaluation.h"
#include "protos/checkpoint.pb.h"
#include "protos/commit_log.pb.h"

namespace lockstep::chief {

// A value for CommitInfo::keep_step: no checkpoint is the best by the present rule yet, so the one that was named the
// best stays.
inline constexpr int64_t kKeepNamed = -1;

// The fields of a manifest besides its tensors and files.
struct CommitInfo {
  std::string job_id;
  std::string fingerprint;
  std::string kernel_plan;
  int64_t trained_ms = 0;
  int64_t position = 0;
  int64_t epoch = 0;                    // whole passes over the training data
  int64_t written_ms = 0;               // wall clock, since 1970
  std::vector<ManifestMember> members;  // of the generation that computed the state, by rank
  bool evaluation_pending = false;
  bool audited = false;
  EvaluationLedger evaluations;
  int64_t keep_step = 0;  // the best checkpoint so far, which retention keeps; 0: none; or kKeepNamed
  // Retention also keeps the newest audited checkpoint up to this step.
  int64_t audit_floor = std::numeric_limits<int64_t>::max();
  std::string job_yaml;           // the resolved job
  std::string worker_stats_json;  // the bytes of the live stats file
};

// A published checkpoint that counts in this term.
struct AcceptedCheckpoint {
  Manifest manifest;
  bool verified = false;  // this process has read or written every byte under its digest
  std::string path;       // the folder of its files; empty: "checkpoints/" and its name
  bool pinned = false;    // retention keeps it
};

// A change that people request for one checkpoint.
enum class CheckpointChange { kPin, kUnpin, kRemove };

// The reason, in names below set_aside/, of checkpoints that a repair gave up; these are never put back.
inline constexpr char kUnaudited[] = "unaudited";

// In a bucket: why a stored checkpoint no longer counts, in one word, by path.
using SetAsideInPlace = std::map<std::string, std::string>;

// By name ("step-000001200"), so sorted by step; at most one per step.
using AcceptedCheckpoints = std::map<std::string, AcceptedCheckpoint>;

// The checkpoints that a chief finds when it starts.
struct FoundCheckpoints {
  AcceptedCheckpoints accepted;
  // Checkpoints that the log names but that could not be read, by base name: an error of the storage proves nothing.
  // They stay in the log, and a later start judges them.
  std::map<std::string, LiveCheckpoint> unread;
  std::set<std::string> retired;  // base names of checkpoints that are still to be removed
  SetAsideInPlace set_aside;
};

struct PublishedCheckpoint {
  Manifest manifest;
  std::string path;                   // "checkpoints/step-000001200", in a bucket with term and random number
  bool existed = false;               // an equal one existed already
  std::vector<std::string> messages;  // for the log: what was set aside or removed, and failures of retention
};

class ManifestStore {
 public:
  // `found`: the result of Recover. Retention keeps what `retention` says, the checkpoint of CommitInfo::keep_step, and
  // those that are pinned. `hold` and `log` are not owned.
  ManifestStore(TermHold& hold, JobLog& log, FoundCheckpoints found, const RetentionRule& retention);

  // Commits a save. Codes: Aborted with IsFenced (a newer chief), DataLoss (the same step with other bits: an alarm),
  // ResourceExhausted, else of the storage. After an error either the save is not published, or it is and a repeated
  // Publish of the same bits sets `existed`; staged files are removed as far as possible.
  absl::StatusOr<PublishedCheckpoint> Publish(StoredShards shards, const CommitInfo& info);

  // Replaces the manifest of a published checkpoint atomically by one whose evaluation is complete, with `ledger`; then
  // updates `best` and applies retention as Publish does (`keep_step` as in CommitInfo). NotFound: the checkpoint does
  // not exist.
  absl::StatusOr<PublishedCheckpoint> Amend(const SnapshotId& id, const EvaluationLedger& ledger, int64_t keep_step);

  // Makes the change durably and returns a message for people. A pinned checkpoint stays until it is unpinned; only a
  // repair or damage sets it aside. NotFound: no checkpoint of this step counts. FailedPrecondition, with the reason:
  // it is not removed, because it is pinned or the job needs it. Else codes as JobLog::Change.
  absl::StatusOr<std::string> Change(CheckpointChange change, int64_t step);

  // Moves the complete, verified and durable checkpoint in `folder` (TermHold::NewCheckpoint) to its place, and records
  // it in the log as pinned. AlreadyExists: the place is taken. After another code, of the storage, it does not count.
  // REQUIRES: no checkpoint of its step is accepted.
  absl::Status Take(const std::string& folder, const Manifest& manifest);

  // Fills a record with the facts of this store: the checkpoints that count, the best, what is being removed.
  void Fill(CommitRecord& record) const;
  // Appends a record with these facts to the log. Codes as JobLog::Change.
  absl::Status Record(absl::string_view what);

  // Stops accepting a checkpoint, first in the log, then moves it whole from checkpoints/ to set_aside/. In a bucket it
  // stays where it is, and the log says why. Returns the new path. `why` is one word.
  absl::StatusOr<std::string> SetAside(absl::string_view base_name, absl::string_view why);

  // The step of the oldest audited checkpoint that the log names; 0 also if there is none.
  int64_t OldestAudited() const;
  // The accepted and verified checkpoints, newest first, whose files a save may reuse. Valid until the next change.
  std::vector<FrozenSource> FrozenSources() const;
  // The newest accepted checkpoint that this process has not verified; postponed ones come last. Empty if there is
  // none.
  std::string NextUnverified() const;
  // Reading this checkpoint failed, which proves nothing: the others are read first.
  void Postpone(const std::string& name) { postponed_.insert(name); }
  // The checkpoint was read whole, and its state has this digest.
  void MarkVerified(const std::string& name, absl::string_view state_digest);
  // Verifies an accepted checkpoint, with all its bytes if `content`. Returns false if it is missing or damaged: it is
  // then no longer accepted, and `messages` say why. Codes of the storage.
  absl::StatusOr<bool> StillGood(const std::string& name, bool content, std::vector<std::string>& messages);
  // Makes room for a save that does not fit: verifies older checkpoints until as many as are to be kept are verified,
  // then removes what retention allows. Codes of the storage.
  absl::Status MakeRoom(std::vector<std::string>& messages);

  // The checkpoint to which a repair goes back (rule 22): the base name of the newest one of a step up to `found_at`
  // that is audited and verifies completely. A later one may descend from the difference, even if all that remained
  // agreed on it. Those that could not be read when this chief started are read again: an error of the storage proves
  // nothing about them, and is returned. Checkpoints that do not verify are set aside. DataLoss: none is left. Else
  // codes of the storage. A manifest of format version 1 is converted first (carry_over_manifest.h).
  absl::StatusOr<std::string> FindAudited(uint64_t found_at, std::vector<std::string>& messages);
  // Stops accepting checkpoints above `step`; the caller records that in the log. Returns the lowest of their steps; 0
  // if there is none.
  int64_t ForgetAbove(int64_t step);
  // Sets aside every stored checkpoint above `step`, and renews the hint `latest`. Codes of the storage; after an error
  // a repeated call does the rest. REQUIRES: the log names none of them any more.
  absl::Status SetAsideAbove(int64_t step, std::vector<std::string>& messages);

  // Called once, before the first Publish, for a job with `checkpoint.keep_best`: verifies the checkpoint that `ledger`
  // calls the best. If it is missing or damaged, the best remaining one that verifies replaces it, in the ledger too;
  // if there is none, no checkpoint is the best yet. Renews the hints. `messages` say what was lost. Codes of the
  // storage.
  absl::Status SettleBest(const EvaluationRule& rule, EvaluationLedger& ledger, std::vector<std::string>& messages);

  // The name of the best checkpoint, which retention keeps; empty if there is none by the rule of SettleBest. If it was
  // removed since, or is visibly damaged, `messages` say so and the next best is returned. Codes of the storage.
  absl::StatusOr<std::string> FindBest(std::vector<std::string>& messages);

  const AcceptedCheckpoints& accepted() const { return accepted_; }
  // The path of the accepted checkpoint of this name, or the path that it would have in a directory.
  std::string PathOf(const std::string& name) const;

 private:
  absl::Status Stage(const StoredShards& shards, const CommitInfo& info, Manifest& manifest);
  absl::Status AddFile(const StoredShards& shards, absl::string_view path, absl::string_view content,
                       Manifest& manifest);
  absl::Status AddIndex(const StoredShards& shards, absl::string_view group, Manifest& manifest);
  // The judgement on a stored checkpoint that is not accepted.
  struct Unknown {
    std::string why;  // the objection in one word; empty: none, it is accepted from now on
    std::string reason;
  };
  // A checkpoint of this term (after a rename of unknown outcome) is accepted. One without a complete manifest is bad:
  // no chief publishes such a thing. Any other is late: its chief published it after this term had looked. `json`: the
  // text of its manifest, or NotFound, or DataLoss.
  absl::StatusOr<Unknown> Judge(const std::string& name, const absl::StatusOr<std::string>& json);
  // Judges all published checkpoints that are not accepted, and sets aside those with an objection; unreadable ones
  // wait. Aborted: a newer chief has the job.
  absl::Status SettleUnknown(std::vector<std::string>& messages);
  // Whether an accepted checkpoint with this name is equal to `mine`; one of another lineage is set aside.
  absl::StatusOr<bool> SameIsThere(const Manifest& mine, std::vector<std::string>& messages);
  // The checkpoints that retention drops, oldest first. It keeps the newest ones, the one from which the job goes on,
  // the best, and what a repair would need: the newest audited one and the newest audited one up to the audit floor,
  // and for each of them, in a job that keeps the best, the best one of its history and the first one after that. Codes
  // of the storage.
  absl::StatusOr<std::vector<std::string>> Superfluous() const;
  // As Record, with these checkpoints retired. After an error it is unknown whether the record counts, so they stay
  // accepted and nothing removes them.
  absl::Status RecordWithout(const std::vector<std::string>& names, absl::string_view what);
  std::set<std::string> NeededByRepair() const;
  // Reads a checkpoint that could not be read when this chief started, and accepts it. Returns its name; empty: it is
  // gone, damaged, or another one than the log names, which `messages` say. Codes of the storage. `unread`: a key of
  // unread_.
  absl::StatusOr<std::string> ReadAgain(const std::string& unread, std::vector<std::string>& messages);
  // Converts a manifest of format version 1 for FindAudited. DataLoss: the checkpoint is damaged.
  absl::Status CarryOver(const std::string& name);
  // Why an accepted checkpoint may not be removed; empty if it may.
  std::string WhyItStays(const std::string& name) const;
  void AddNeededToGoBack(int64_t found_at, std::set<std::string>& needed) const;
  absl::Status FreeName(const std::string& name);
  // Removes the retired checkpoints, and reports those that were removed by hand.
  absl::Status RemoveRetired(std::vector<std::string>& messages);
  // The last part of Publish and Amend: records the best checkpoint and the effect of retention in one record, then
  // renews the hints and removes files; failures of these are messages.
  absl::Status Commit(absl::string_view what, int64_t keep_step, std::vector<std::string>& messages);
  // The accepted checkpoint with the best evaluation of its own; empty if none has one.
  std::string BestLeft() const;
  absl::Status NameBest(const std::string& name);
  absl::Status NameNoBest();
  absl::Status HintBest();
  // The name of the checkpoint that the log calls the best; empty if there is none.
  std::string BestInLog() const;
  // Finds the best checkpoint: by the log, or by the hint `best` in a directory that is carried over, if it is
  // accepted; sets best_unknown_ if it cannot be determined.
  absl::Status FindNamedBest(std::vector<std::string>& messages);

  TermHold& hold_;
  JobLog& log_;
  AcceptedCheckpoints accepted_;
  std::map<std::string, LiveCheckpoint> unread_;  // as in FoundCheckpoints
  std::set<std::string> retired_;                 // base names of checkpoints that are being removed
  SetAsideInPlace set_aside_;
  std::vector<std::string> forgotten_;  // in a bucket: paths that ForgetAbove dropped
  bool recorded_ = true;                // the newest record has the facts of this store
  const bool carries_;                  // the log has no history yet; the hint `best` is of an earlier program
  const RetentionRule retention_;
  int64_t audit_floor_ = CommitInfo().audit_floor;  // of the newest Publish
  std::optional<EvaluationRule> rule_;              // set if the job keeps the best
  std::string best_;                                // base name of the best, which retention keeps; empty: none
  std::set<std::string> postponed_;                 // names
  // The name of the checkpoint from which the chief's core would go on: the newest one at the start, then the one that
  // was published last, or that a repair went back to. One whose save failed after the rename may count, too, but the
  // core does not know it, so it does not displace this one.
  std::string published_;
  bool best_unknown_ = false;  // there is a best checkpoint whose name was lost: retention removes nothing
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_MANIFEST_STORE_H_
