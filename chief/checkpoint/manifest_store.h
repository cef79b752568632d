// Publishes saves: the last stage of the data flow. Commit order: shards synced (ShardSink) → index, stats, job,
// manifest → fsync each → fsync the directory → one rename → fsync the parent → one record of the commit log → `latest`
// → what retention took off the record is removed. In a bucket, where nothing is renamed, the files lie under their
// final names from the start, and the record alone makes them a checkpoint.
//
// Invariants
//   * A checkpoint's directory appears under its name complete and durable, or not at all.
//   * It counts from the moment the log has it, and nothing that a record of the log may still name is removed.
//   * What is published is never changed: Amend replaces a manifest, retention and setting aside move all of it.
//   * Publishing onto an equal digest is success. Onto another of the same lineage and step it is an alarm (DataLoss);
//     one of another lineage, which this one replaces, is set aside.
//   * A manifest of an older term that this term did not accept is set aside wherever it turns up, and so is a
//     checkpoint without a whole manifest.
//   * A removal renames into staging first, so that a half removed checkpoint never stands under a published name. One
//     is removed only when `keep_latest` newer ones are verified; so the last that verifies never goes.
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

// For CommitInfo::keep_step: nothing is the best by today's rule yet, so what was called the best stays.
inline constexpr int64_t kKeepNamed = -1;

// What a manifest says besides its tensors and files.
struct CommitInfo {
  std::string job_id;
  std::string fingerprint;
  std::string kernel_plan;
  int64_t trained_ms = 0;
  int64_t position = 0;
  int64_t epoch = 0;                    // whole passes over the training data
  int64_t written_ms = 0;               // wall clock, since 1970
  std::vector<ManifestMember> members;  // of the generation that computed it, by rank
  bool evaluation_pending = false;
  bool audited = false;
  EvaluationLedger evaluations;
  int64_t keep_step = 0;  // retention leaves this checkpoint: the best so far; 0: none, or kKeepNamed
  // Retention leaves the newest audited checkpoint up to this step as well as the newest.
  int64_t audit_floor = std::numeric_limits<int64_t>::max();
  std::string job_yaml;           // the resolved job
  std::string worker_stats_json;  // the bytes of the live stats file
};

// A published checkpoint that a term stands by.
struct AcceptedCheckpoint {
  Manifest manifest;
  bool verified = false;  // every byte was read or written under its digest by this process
  std::string path;       // where its files lie; empty: "checkpoints/" and its name
  bool pinned = false;    // retention leaves it
};

// What people ask for one checkpoint.
enum class CheckpointChange { kPin, kUnpin, kRemove };

// In set_aside/, of what a repair gave up: never put back.
inline constexpr char kUnaudited[] = "unaudited";

// In a bucket: why what stands there counts no more, one word, by path.
using SetAsideInPlace = std::map<std::string, std::string>;

// By name ("step-000001200"), so that they sort by step; there is one of a step.
using AcceptedCheckpoints = std::map<std::string, AcceptedCheckpoint>;

// What a chief finds of its job's checkpoints when it starts.
struct FoundCheckpoints {
  AcceptedCheckpoints accepted;
  // Of the log, by base name: the place gave an error for them, which proves nothing. They stay in the log, and a later
  // start judges them.
  std::map<std::string, LiveCheckpoint> unread;
  std::set<std::string> retired;  // base names of what is still to be removed
  SetAsideInPlace set_aside;
};

struct PublishedCheckpoint {
  Manifest manifest;
  std::string path;                   // "checkpoints/step-000001200", in a bucket with term and random number
  bool existed = false;               // an equal one was there
  std::vector<std::string> messages;  // what was set aside or removed, and failures of retention: for the log
};

class ManifestStore {
 public:
  // `found`: by Recover. Besides what `retention` keeps, that of CommitInfo::keep_step and those that are pinned stay.
  // `hold` and `log` are not owned.
  ManifestStore(TermHold& hold, JobLog& log, FoundCheckpoints found, const RetentionRule& retention);

  // Commits a save. Codes: Aborted with IsFenced (a newer chief), DataLoss (the same step with other bits: an alarm),
  // ResourceExhausted, else of the storage. After an error the save is not published, or it is and a repeated Publish
  // of the same bits says `existed`; staged files are removed as far as possible.
  absl::StatusOr<PublishedCheckpoint> Publish(StoredShards shards, const CommitInfo& info);

  // Replaces the manifest of a published checkpoint, atomically, by one whose evaluation is no longer pending and gave
  // `ledger`; then `best` and retention as after Publish (`keep_step` as in CommitInfo). NotFound when it is not there.
  absl::StatusOr<PublishedCheckpoint> Amend(const SnapshotId& id, const EvaluationLedger& ledger, int64_t keep_step);

  // Makes the change, durably, and says what came of it, for people. A checkpoint that is pinned stays until it is
  // unpinned; only a repair and damage set it aside. NotFound: none of this step counts. FailedPrecondition with the
  // reason: it is not removed, because it is pinned, or the job needs it. Else codes as JobLog::Change.
  absl::StatusOr<std::string> Change(CheckpointChange change, int64_t step);

  // Gives the whole, verified and durable checkpoint in `folder` (TermHold::NewCheckpoint) its place, and puts it into
  // the log, pinned. AlreadyExists: something stands there. Else codes of the storage: it does not count. REQUIRES:
  // none of its step is accepted.
  absl::Status Take(const std::string& folder, const Manifest& manifest);

  // Sets in a record what this store knows of: the checkpoints that count, the best, what is being removed.
  void Fill(CommitRecord& record) const;
  // Appends that to the log. Codes as JobLog::Change.
  absl::Status Record(absl::string_view what);

  // Moves a checkpoint out of checkpoints/ into set_aside/, whole, and accepts it no more, after the log said so. In a
  // bucket it stays, and the log says why. Returns the new path. `why` is one word.
  absl::StatusOr<std::string> SetAside(absl::string_view base_name, absl::string_view why);

  // The step of the oldest audited checkpoint; 0 also where there is none.
  int64_t OldestAudited() const;
  // The accepted checkpoints that were verified, newest first: what a save may take over of them. Valid until the next
  // change.
  std::vector<FrozenSource> FrozenSources() const;
  // The newest accepted checkpoint of which this process has not read every byte, one that was not postponed before
  // those that were; empty: there is none.
  std::string NextUnverified() const;
  // The place gave an error for it, which proves nothing: the others are read first.
  void Postpone(const std::string& name) { postponed_.insert(name); }
  // Every byte of it was read and is that of this state.
  void MarkVerified(const std::string& name, absl::string_view state_digest);
  // Verifies an accepted checkpoint, its bytes too when `content`. False when it is gone or damaged: then it is
  // accepted no more, and `messages` say why. Codes of the storage.
  absl::StatusOr<bool> StillGood(const std::string& name, bool content, std::vector<std::string>& messages);
  // For a save that does not fit: reads through older checkpoints until as many as are kept are verified, and removes
  // what retention lets go then. Codes of the storage.
  absl::Status MakeRoom(std::vector<std::string>& messages);

  // What a repair goes back to (rule 22): the base name of the newest checkpoint of a step up to `found_at` that is
  // audited and verifies, every byte of it. A later one is of a state that followed from the difference, even if all
  // that were left agreed on it. Those that do not verify are set aside. DataLoss: none is left. Else codes of the
  // storage.
  // One whose manifest is of format version 1 gets one of today's first (carry_over_manifest.h).
  absl::StatusOr<std::string> FindAudited(uint64_t found_at, std::vector<std::string>& messages);
  // Accepts no checkpoint above `step` any more; the caller puts that into the log. Returns the step of the first one;
  // 0: there is none.
  int64_t ForgetAbove(int64_t step);
  // Sets aside every checkpoint above `step` that stands there, and renews the hint `latest`. Codes of the storage;
  // after an error a repeated call does what is left. REQUIRES: the log has none of them any more.
  absl::Status SetAsideAbove(int64_t step, std::vector<std::string>& messages);

  // Once, before the first Publish, of a job with `checkpoint.keep_best`: reads through the checkpoint that `ledger`
  // calls the best. Where it is gone or damaged, the best of those that are left and verify takes its place, in the
  // ledger too; with none, nothing is the best yet. Renews the hints. Messages say what was lost. Codes of the storage.
  absl::Status SettleBest(const EvaluationRule& rule, EvaluationLedger& ledger, std::vector<std::string>& messages);

  // The checkpoint that retention leaves as the best, empty when there is none by the rule of SettleBest; when it is
  // gone since, or damaged at first sight, that is said in `messages` and the next best is named. Codes of the storage.
  absl::StatusOr<std::string> FindBest(std::vector<std::string>& messages);

  const AcceptedCheckpoints& accepted() const { return accepted_; }
  // Where the accepted checkpoint of this name lies, or would lie in a directory.
  std::string PathOf(const std::string& name) const;

 private:
  absl::Status Stage(const StoredShards& shards, const CommitInfo& info, Manifest& manifest);
  absl::Status AddFile(const StoredShards& shards, absl::string_view path, absl::string_view content,
                       Manifest& manifest);
  absl::Status AddIndex(const StoredShards& shards, absl::string_view group, Manifest& manifest);
  // What speaks against a checkpoint that stands there and is not accepted.
  struct Unknown {
    std::string why;  // one word; empty: nothing, it is accepted now
    std::string reason;
  };
  // This term's own (a rename whose outcome was not known) is accepted. One without a whole manifest is bad: no chief
  // publishes such a thing. Every other one is late: its chief had it published after this term looked.
  // `json`: of its manifest, or NotFound, or DataLoss.
  absl::StatusOr<Unknown> Judge(const std::string& name, const absl::StatusOr<std::string>& json);
  // Judges what is published and not accepted, and sets aside what something speaks against; what cannot be read for
  // now waits. Aborted when a newer chief has the job.
  absl::Status SettleUnknown(std::vector<std::string>& messages);
  // What to do about an accepted checkpoint under the same name: true when it is equal.
  absl::StatusOr<bool> SameIsThere(const Manifest& mine, std::vector<std::string>& messages);
  // Accepts what counts no more by retention as retired. Leaves the newest that are there, the best, and what a repair
  // would need: the newest audited one, that up to the audit floor and, of a job that keeps the best, the best of the
  // history of each and the first one after it.
  absl::Status Retire();
  std::set<std::string> NeededByRepair() const;
  // As FindAudited says of it. DataLoss: it is damaged.
  absl::Status CarryOver(const std::string& name);
  // Why a checkpoint that is accepted is not to be removed; empty: it may be.
  std::string WhyItStays(const std::string& name) const;
  void AddNeededToGoBack(int64_t found_at, std::set<std::string>& needed) const;
  absl::Status FreeName(const std::string& name);
  // Removes what is retired; what somebody removed by hand is named.
  absl::Status RemoveRetired(std::vector<std::string>& messages);
  // The end of Publish and Amend: what is the best and what retention leaves, all in one record; then the hints and the
  // removals, whose failures are messages.
  absl::Status Commit(absl::string_view what, int64_t keep_step, std::vector<std::string>& messages);
  // The accepted checkpoint whose own evaluation is the best by the rule; empty when none has one.
  std::string BestLeft() const;
  absl::Status NameBest(const std::string& name);
  absl::Status NameNoBest();
  absl::Status HintBest();
  // The name of the checkpoint that the log calls the best; empty: none is.
  std::string BestInLog() const;
  // What the log names, or in a directory that is carried over the hint `best`, when that is accepted; sets
  // best_unknown_ when it cannot be told.
  absl::Status FindNamedBest(std::vector<std::string>& messages);

  TermHold& hold_;
  JobLog& log_;
  AcceptedCheckpoints accepted_;
  std::map<std::string, LiveCheckpoint> unread_;  // as in FoundCheckpoints
  std::set<std::string> retired_;                 // base names of what is being removed
  SetAsideInPlace set_aside_;
  std::vector<std::string> forgotten_;  // paths, of ForgetAbove, in a bucket
  bool recorded_ = true;                // the newest record says what stands here
  const bool carries_;                  // the log has no history yet: the hint `best` is that of an earlier program
  const RetentionRule retention_;
  int64_t audit_floor_ = CommitInfo().audit_floor;  // of the newest Publish
  std::optional<EvaluationRule> rule_;              // of a job that keeps the best
  std::string best_;                 // base name of what retention leaves besides the newest; empty: nothing
  std::set<std::string> postponed_;  // names
  // The name that was published last. The job goes on from it: a newer one whose save failed behind its rename counts
  // by now, and does not push it out.
  std::string published_;
  bool best_unknown_ = false;  // something is the best and its name was lost: retention removes nothing
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_MANIFEST_STORE_H_
