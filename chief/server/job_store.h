// The job's directory, or its place in a bucket, while one chief owns it: claimed, recovered, and from then on the only
// way to its bytes. Joins the parts of chief/term, chief/checkpoint and chief/metagraph.
//
// Threading: thread-safe. Calls block on the storage and wait for each other, except where noted: OpenSave, CloseSave
// and the fetches of what is in memory never block; Beat, Receive and ReadShare wait for no other call's work.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_STORE_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/checkpoint/found_mark.h"
#include "chief/checkpoint/manifest_store.h"
#include "chief/checkpoint/shard_sink.h"
#include "chief/checkpoint/share_receiver.h"
#include "chief/core/actions.h"
#include "chief/core/events.h"
#include "chief/core/policy.h"
#include "chief/events/event_files.h"
#include "chief/server/job_setup.h"
#include "chief/server/open_saves.h"
#include "chief/server/step_files.h"
#include "chief/stats/line_files.h"
#include "chief/term/bucket_hold.h"
#include "chief/term/job_log.h"
#include "chief/term/log_term_registry.h"
#include "chief/term/storage_term_registry.h"
#include "chief/term/term_claim.h"
#include "common/checkpoint_format/naming.h"
#include "common/job_place/job_place.h"
#include "common/storage/storage.h"
#include "common/sync/mutex.h"
#include "protos/checkpoint.pb.h"
#include "protos/stats.pb.h"

namespace lockstep::chief {

struct FoundBest {
  uint64_t step = 0;  // 0: there is none
  double value = 0;   // of the metric that decides
  std::string path;
  std::vector<std::string> messages;  // losses that were found, for the log
};

class JobStore {
 public:
  // Takes over the job's directory, recovers its newest checkpoint, and writes step 0 if there is none (rule 18). Sets
  // setup.policy.lineage. Sets `exit_code` if it fails. `succeeds`: the term that a standby saw end or fall silent
  // (LogTermRegistry); its lock is ignored.
  static absl::StatusOr<std::unique_ptr<JobStore>> Open(JobSetup& setup, int& exit_code,
                                                        std::optional<int64_t> succeeds = std::nullopt);
  // As Open, at a place that is open already.
  static absl::StatusOr<std::unique_ptr<JobStore>> OpenAt(std::unique_ptr<JobPlace> place, JobSetup& setup,
                                                          int& exit_code,
                                                          std::optional<int64_t> succeeds = std::nullopt);

  const RecoveredState& recovered() const { return recovered_; }
  const std::string& token() const { return token_; }
  // The address of the previous chief; empty if there was none.
  const std::string& earlier_address() const { return earlier_address_; }
  absl::Status WriteAddress(const std::string& address);
  // Shows standby chiefs that this one lives. Waits for no other call; called by one thread at a time. Fails once a
  // newer chief took over.
  absl::Status Beat();
  // Records in the commit log that this chief ended by itself, with `exit_code`.
  absl::Status RecordEnd(int exit_code);
  // Writes the address again if it was removed or damaged, or if another lock was made beside it. A chief that took
  // over while its predecessor held the directory's lock takes the lock once that process has ended.
  absl::Status KeepAddress();
  // A path below the directory, as a user would find it.
  std::string Describe(absl::string_view path) const { return storage_->Describe(path); }

  // The path of the checkpoint of this step, as a user would find it.
  std::string DescribeCheckpoint(uint64_t step);

  // ---- saves; codes as ShardSink and ManifestStore
  void OpenSave(const SnapshotId& id, uint32_t shares) { saves_.Open(id, shares); }  // does not block on the storage
  std::shared_ptr<OpenSaves::Save> CloseSave(const SnapshotId& id) { return saves_.Close(id); }  // neither does this
  // For a save with a frozen share: whether an earlier checkpoint supplied it. FailedPrecondition: the save is not
  // open; else codes of ShardSink::Open.
  absl::StatusOr<bool> HasFrozenShare(const SnapshotId& id);
  // Deletes what was stored of a save. `save`: the result of CloseSave.
  void AbandonSave(const SnapshotId& id, const std::shared_ptr<OpenSaves::Save>& save);
  // Returns the receiver for one sender's bytes of a share; codes as ShareReceiver::Begin. InvalidArgument also if the
  // save has another number of shares, FailedPrecondition if it is not open.
  absl::StatusOr<ShareReceiver> Receive(const SnapshotId& id, uint32_t share, uint32_t shares,
                                        absl::string_view tensor_digests, absl::string_view leaf_digests);
  // OK if the save that is open now has the whole share; Aborted if not.
  absl::Status CheckShareComplete(const SnapshotId& id, uint32_t share);
  // The save of `id` that is open, for FinishShards; null if none is. Does not block on the storage.
  std::shared_ptr<OpenSaves::Save> FindSave(const SnapshotId& id) { return saves_.Find(id); }
  // Returns the digest of the state, computed from the stored bytes. Cancelled: `save` was null or is abandoned,
  // whether or not the snapshot is being saved anew. FailedPrecondition: a share is missing. Else codes of the
  // storage.
  absl::StatusOr<std::string> FinishShards(const SnapshotId& id, const std::shared_ptr<OpenSaves::Save>& save);
  absl::StatusOr<PublishedCheckpoint> Publish(const SnapshotId& id, CommitInfo info);
  absl::StatusOr<PublishedCheckpoint> Amend(const SnapshotId& id, const EvaluationLedger& ledger, int64_t keep_step);
  // Returns the job to the newest audited checkpoint (rule 22). Durable once the log has the new lineage; after an
  // error a repeated call finishes the rest. `messages`: what was set aside, for the log. DataLoss: no audited
  // checkpoint is left; else codes of the storage.
  absl::StatusOr<RepairRecorded> Repair(const RecordRepair& order, std::vector<std::string>& messages);
  // As ManifestStore::Change.
  absl::StatusOr<std::string> ChangeCheckpoint(CheckpointChange change, int64_t step);
  // The best checkpoint, for a job with `checkpoint.keep_best`. Codes of the storage.
  absl::StatusOr<FoundBest> FindBest();

  // Verifies the next checkpoint of an earlier chief, so that retention counts it; sets a damaged one aside. Returns
  // false if all are verified. Cancelled: `stop` became true. Codes of the storage.
  absl::StatusOr<bool> VerifyNext(const std::atomic<bool>* stop, std::vector<std::string>& messages);

  absl::Status StorePlan(const std::string& hash, const std::string& bytes, const std::string& data_digest);
  // Stores the drains for the next chief.
  absl::Status StoreDrains(const std::vector<Drain>& drains);
  // The stats/worker_stats.json that an earlier chief wrote. NotFound if there is none.
  absl::StatusOr<WorkerStatsFile> ReadStats();
  // Replaces stats/worker_stats.json.
  absl::Status WriteStats(const std::string& json);
  // Stores the text that the model generated after the evaluation of a step; replaces an earlier one.
  absl::Status WriteSample(int64_t step, const std::string& text) {
    return WriteText(layout::kSamples, layout::StepName(step), text);
  }
  // Stores the output of a hook's command in logs/hooks/; replaces an earlier one.
  absl::Status WriteHookOutput(const std::string& name, const std::string& text);
  // Stores a trace of a worker's steps in profiles/; replaces an earlier one.
  absl::Status WriteTrace(const std::string& file, const std::string& bytes);
  // Stores the last events of this chief's core in logs/, if the chief ends by a defect or a spent budget; replaces
  // earlier ones.
  absl::Status WriteLastEvents(const std::string& text) {
    return WriteText(layout::kLogs, absl::StrCat("last-events-term-", recovered_.term), text);
  }
  // Stores the URL of the job's page, for people and for the next chief, which reuses the port.
  absl::Status WritePage(const std::string& url) { return WriteText(layout::kChief, "page", url + "\n"); }
  // The URL that an earlier chief stored; empty if there is none.
  std::string ReadPage() const;
  // Appends event records durably, as EventFiles::Append.
  absl::Status AppendEvents(const std::string& records);
  // Stores the events of the job's metagraph, unless an earlier chief did. Codes of the storage.
  absl::Status StoreMetagraphEvents(const std::function<std::string()>& make_records);
  // Appends whole lines durably to files in `folder`, as LineFiles::Append.
  absl::Status AppendLines(const char* folder, const std::string& lines);

  // ---- what workers fetch. The job's metagraph, and a plan that was stored or read once, are kept in memory, so that
  // workers can prepare while the storage does not answer.
  const std::string& job_yaml() const { return job_yaml_; }
  absl::StatusOr<std::string> ReadMetagraph(const std::string& fingerprint);
  absl::StatusOr<std::string> ReadPlan(const std::string& hash);
  absl::StatusOr<Share> ShareOf(uint32_t share, uint32_t shares) const;
  absl::StatusOr<std::string> ReadShare(const SnapshotId& id, const Share& share, uint64_t offset, uint64_t bytes);

 private:
  JobStore() = default;

  void KeepPlan(const std::string& hash, const std::string& plan);
  absl::StatusOr<std::shared_ptr<const CheckpointReader>> ReaderOf(const SnapshotId& id);
  static absl::StatusOr<std::string> NameOfMetagraph(absl::string_view bytes);

  // Replaces the text file `folder`/`name`.txt, for people.
  absl::Status WriteText(const char* folder, const std::string& name, const std::string& text);
  // Replaces `folder`/`file`, which is named after a step, and removes files of the oldest steps beyond `most`.
  absl::Status WriteOfStep(const char* folder, const std::string& file, const std::string& bytes, size_t most);
  absl::Status TakeOver(JobSetup& setup, int& exit_code);
  // Claims the directory and reads its token. Returns the mark of the job to which it belongs.
  absl::StatusOr<FoundMark> Claim(const JobSetup& setup, int& exit_code) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Checked before the claim, so that a running chief is not replaced by one that could not continue the job.
  absl::Status CheckMayClaim(const JobSetup& setup, const std::optional<DirectoryMark>& mark, int& exit_code);
  // Checks the same for the newest checkpoint and the files that it needs.
  absl::Status CheckNewestGoesOn(const JobSetup& setup, const DirectoryMark& mark, int& exit_code);
  // OK if the job may continue from `newest`; logs what changed.
  absl::Status CheckGoesOn(const JobSetup& setup, const CheckpointReader& newest);
  // Claims the next term in the directory or the bucket.
  absl::StatusOr<std::unique_ptr<TermHold>> Hold() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // In a bucket: removes objects of earlier chiefs that no record names. OK unless a newer chief has the job.
  absl::Status SweepBucket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The path of a checkpoint, which need not exist.
  std::string PathOf(int64_t step) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives a new job its lineage.
  absl::Status BeginHistory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The last step of taking over: finds the plan and drains, and writes the job's facts as one record. `in_log`: the
  // log had them before.
  absl::Status Settle(const JobSetup& setup, bool in_log, const std::string& trained_with)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the lineage of `order` the job's; it branches off the present one at `step`.
  absl::Status BranchOff(const RecordRepair& order, int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Publishes shards, after adding the job, its file and the time to the manifest.
  absl::StatusOr<PublishedCheckpoint> PublishStored(const StoredShards& shards, CommitInfo info)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PublishStepZero(const JobSetup& setup) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stores for people which weights the job began from.
  absl::Status WriteWarmStart(const WarmStartReport& report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fills recovered_ from the restored checkpoint.
  void TakeUp(const CheckpointReader& newest);
  void TakeUpHosts();
  // Called at every start: determines the best checkpoint by this rule.
  absl::Status SettleBest(const EvaluationRule& rule);
  // Explains a missing checkpoint file: DataLoss if it was removed, the error itself while the directory is not
  // reachable.
  absl::Status ExplainMissing(const absl::Status& error) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::unique_ptr<ShardSink>> MakeSink(const SnapshotId& id, uint32_t shares);

  std::unique_ptr<JobPlace> place_;
  Storage* storage_ = nullptr;  // of place_
  std::unique_ptr<JobLog> log_;
  std::unique_ptr<StorageTermRegistry> older_terms_;
  std::unique_ptr<LogTermRegistry> registry_;
  IfLocked if_locked_ = IfLocked::kRefuse;
  std::string job_id_;
  std::string fingerprint_;
  std::string metagraph_;
  std::string job_yaml_;
  std::string token_;
  std::string earlier_address_;
  std::vector<CheckpointTensor> layout_;
  RecoveredState recovered_;

  OpenSaves saves_{[this](const SnapshotId& id, uint32_t shares) { return MakeSink(id, shares); }};

  Mutex plan_mutex_;  // never held while the storage works
  std::string plan_hash_ GUARDED_BY(plan_mutex_);
  std::string plan_ GUARDED_BY(plan_mutex_);

  Mutex mutex_;                                             // held during storage operations: the loop must not take it
  std::optional<InitialState> initial_ GUARDED_BY(mutex_);  // of a new job, until step 0 is published
  std::unique_ptr<TermHold> hold_ GUARDED_BY(mutex_);
  BucketHold* bucket_hold_ GUARDED_BY(mutex_) = nullptr;  // the same object as hold_, if in a bucket
  DirectoryMark mark_ GUARDED_BY(mutex_);                 // the job's history
  std::string repairing_ GUARDED_BY(mutex_);              // the lineage of the repair under way
  uint64_t set_aside_from_ GUARDED_BY(mutex_) = 0;        // the lowest step that this repair set aside; 0: none
  EvaluationRule rule_;
  std::optional<ManifestStore> manifests_ GUARDED_BY(mutex_);
  std::map<SnapshotId, StoredShards> stored_ GUARDED_BY(mutex_);
  std::shared_ptr<const CheckpointReader> reader_ GUARDED_BY(mutex_);  // reads the checkpoint that workers fetch
  std::optional<EventFiles> events_ GUARDED_BY(mutex_);
  std::map<std::string, LineFiles> lines_ GUARDED_BY(mutex_);       // by folder
  std::map<std::string, StepFiles> step_files_ GUARDED_BY(mutex_);  // by folder
  std::string address_ GUARDED_BY(mutex_);
  uint64_t beats_ = 0;  // used by the thread that calls Beat
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_STORE_H_
