// The job's directory, or its place in a bucket, in the hands of one chief: claimed, recovered, and from then on the
// only way to its bytes. Joins the parts of chief/term, chief/checkpoint and chief/metagraph.
//
// Threading: thread-safe; every call blocks on the storage, one at a time but for Receive and what it returns.
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
  double value = 0;   // of its evaluation
  std::string path;
  std::vector<std::string> messages;  // what was lost: for the log
};

class JobStore {
 public:
  // Takes over the directory of the job, restores what is there, and writes step 0 where nothing is (rule 18). Sets
  // setup.policy.lineage. `exit_code` is set when it fails. `succeeds`: the term that a standby saw end or fall silent
  // (LogTermRegistry); its lock is passed over.
  static absl::StatusOr<std::unique_ptr<JobStore>> Open(JobSetup& setup, int& exit_code,
                                                        std::optional<int64_t> succeeds = std::nullopt);
  // The same at a place that is open.
  static absl::StatusOr<std::unique_ptr<JobStore>> OpenAt(std::unique_ptr<JobPlace> place, JobSetup& setup,
                                                          int& exit_code,
                                                          std::optional<int64_t> succeeds = std::nullopt);

  const RecoveredState& recovered() const { return recovered_; }
  const std::string& token() const { return token_; }
  // Where the chief before this one listened; empty when there was none.
  const std::string& earlier_address() const { return earlier_address_; }
  absl::Status WriteAddress(const std::string& address);
  // Tells standby chiefs that this one lives. Waits for no other call; by one thread at a time. After a newer chief
  // took over it fails.
  absl::Status Beat();
  // Tells them, and whoever reads the log, that this chief ends by itself.
  absl::Status RecordEnd(int exit_code);
  // Writes it again where somebody removed or damaged it, or made another lock beside it. A chief that took over from
  // one that held the directory's lock takes it once that one has ended.
  absl::Status KeepAddress();
  // A path below the directory as a user would find it.
  std::string Describe(absl::string_view path) const { return storage_->Describe(path); }

  // Where the checkpoint of this step is, as a user finds it.
  std::string DescribeCheckpoint(uint64_t step);

  // Saves. Codes as ShardSink and ManifestStore.
  void OpenSave(const SnapshotId& id, uint32_t shares) { saves_.Open(id, shares); }  // does not block on the storage
  std::shared_ptr<OpenSaves::Save> CloseSave(const SnapshotId& id) { return saves_.Close(id); }  // neither does this
  // Of a save with a frozen share: whether an earlier checkpoint gave it. FailedPrecondition when it is not open; else
  // codes of ShardSink::Open.
  absl::StatusOr<bool> HasFrozenShare(const SnapshotId& id);
  // What CloseSave returned.
  void AbandonSave(const SnapshotId& id, const std::shared_ptr<OpenSaves::Save>& save);
  // Where a sender's bytes of a share go; as ShareReceiver::Begin. InvalidArgument also when the save was cut into
  // another number of shares, FailedPrecondition when it is not open.
  absl::StatusOr<ShareReceiver> Receive(const SnapshotId& id, uint32_t share, uint32_t shares,
                                        absl::string_view tensor_digests, absl::string_view leaf_digests);
  // OK when all of the share is in the save that is open now. Aborted: it is not.
  absl::Status CheckShareComplete(const SnapshotId& id, uint32_t share);
  // The digest computed from the stored bytes.
  absl::StatusOr<std::string> FinishShards(const SnapshotId& id);
  absl::StatusOr<PublishedCheckpoint> Publish(const SnapshotId& id, CommitInfo info);
  absl::StatusOr<PublishedCheckpoint> Amend(const SnapshotId& id, const EvaluationLedger& ledger, int64_t keep_step);
  // Goes back to the newest audited checkpoint, as ordered (rule 22). Durable once the log has the new lineage;
  // after an error a repeated call does what is left. `messages`: what was set aside, for the log. DataLoss: no audited
  // checkpoint is left; else codes of the storage.
  absl::StatusOr<RepairRecorded> Repair(const RecordRepair& order, std::vector<std::string>& messages);
  // As ManifestStore::Change.
  absl::StatusOr<std::string> ChangeCheckpoint(CheckpointChange change, int64_t step);
  // The best checkpoint as it stands now, with `checkpoint.keep_best`. Codes of the storage.
  absl::StatusOr<FoundBest> FindBest();

  // Reads through the next checkpoint that an earlier chief left, so that retention counts it; sets a damaged one
  // aside. False: all are verified. Cancelled: `stop` became true. Codes of the storage.
  absl::StatusOr<bool> VerifyNext(const std::atomic<bool>* stop, std::vector<std::string>& messages);

  absl::Status StorePlan(const std::string& hash, const std::string& bytes, const std::string& data_digest);
  // Who is kept away from the job, for the next chief.
  absl::Status StoreDrains(const std::vector<Drain>& drains);
  // stats/worker_stats.json as an earlier chief left it. NotFound.
  absl::StatusOr<WorkerStatsFile> ReadStats();
  // Replaces it.
  absl::Status WriteStats(const std::string& json);
  // What the model wrote after the evaluation of a step; replaces what is there.
  absl::Status WriteSample(int64_t step, const std::string& text) {
    return WriteText(layout::kSamples, layout::StepName(step), text);
  }
  // What a command of a hook wrote, in logs/hooks/; replaces what is there.
  absl::Status WriteHookOutput(const std::string& name, const std::string& text);
  // A trace of a worker's steps, in profiles/; replaces what is there.
  absl::Status WriteTrace(const std::string& file, const std::string& bytes);
  // The last events of this chief's core, in logs/, when it ends by a defect or a spent budget; replaces what is there.
  absl::Status WriteLastEvents(const std::string& text) {
    return WriteText(layout::kLogs, absl::StrCat("last-events-term-", recovered_.term), text);
  }
  // Where people find the job's page, for them and for the next chief, which takes the port again.
  absl::Status WritePage(const std::string& url) { return WriteText(layout::kChief, "page", url + "\n"); }
  // As an earlier chief wrote it; empty: none did.
  std::string ReadPage() const;
  // Makes records of events durable, as EventFiles::Append.
  absl::Status AppendEvents(const std::string& records);
  // Stores the events of the job's metagraph where no chief of the job has yet. Codes of the storage.
  absl::Status StoreMetagraphEvents(const std::function<std::string()>& make_records);
  // Makes whole lines durable in files of `folder`, as LineFiles::Append.
  absl::Status AppendLines(const char* folder, const std::string& lines);

  // What workers fetch. The metagraph, and a plan that was stored or read once, are kept in memory: workers can prepare
  // while the storage does not answer.
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

  // For people: `folder`/`name`.txt; replaces it.
  absl::Status WriteText(const char* folder, const std::string& name, const std::string& text);
  // Replaces `folder`/`file`, which is named after a step, and removes files of the oldest steps beyond `most`.
  absl::Status WriteOfStep(const char* folder, const std::string& file, const std::string& bytes, size_t most);
  absl::Status TakeOver(JobSetup& setup, int& exit_code);
  // Becomes the directory's chief and takes its token. Returns what it belongs to.
  absl::StatusOr<FoundMark> Claim(const JobSetup& setup, int& exit_code) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asked before the claim: a chief that runs the job elsewhere is not replaced by one that could not go on.
  absl::Status CheckMayClaim(const JobSetup& setup, const std::optional<DirectoryMark>& mark, int& exit_code);
  // The same of the newest checkpoint and what it needs.
  absl::Status CheckNewestGoesOn(const JobSetup& setup, const DirectoryMark& mark, int& exit_code);
  // OK when the job may go on from `newest`; the log gets what changed.
  absl::Status CheckGoesOn(const JobSetup& setup, const CheckpointReader& newest);
  // Claims the next term in the directory or the bucket.
  absl::StatusOr<std::unique_ptr<TermHold>> Hold() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // In a bucket: removes what earlier chiefs left and no record names. OK unless a newer chief has the job.
  absl::Status SweepBucket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a checkpoint that need not be there.
  std::string PathOf(int64_t step) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives a new job its lineage.
  absl::Status BeginHistory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The end of taking over: finds plan and drains, and puts all that is true of the job into one record. `in_log`: the
  // log had it before.
  absl::Status Settle(const JobSetup& setup, bool in_log, const std::string& trained_with)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the lineage of `order` the job's, from `step` of the present one on.
  absl::Status BranchOff(const RecordRepair& order, int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Publishes, with the job, its file and the time in the manifest.
  absl::StatusOr<PublishedCheckpoint> PublishStored(const StoredShards& shards, CommitInfo info)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PublishStepZero(const JobSetup& setup) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For people: what the job began from.
  absl::Status WriteWarmStart(const WarmStartReport& report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What the checkpoint that is restored says.
  void TakeUp(const CheckpointReader& newest);
  void TakeUpHosts();
  // At every start, also of a job that begins: from here on the best checkpoint is known by this rule.
  absl::Status SettleBest(const EvaluationRule& rule);
  // Of a checkpoint's file: DataLoss where somebody removed it, the error itself while the directory is away.
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

  Mutex mutex_;  // held while the storage works: the loop takes it in no call
  std::optional<InitialState> initial_ GUARDED_BY(mutex_);  // of a job that begins, until it is published
  std::unique_ptr<TermHold> hold_ GUARDED_BY(mutex_);
  BucketHold* bucket_hold_ GUARDED_BY(mutex_) = nullptr;  // hold_, in a bucket
  DirectoryMark mark_ GUARDED_BY(mutex_);                 // the job's history
  std::string repairing_ GUARDED_BY(mutex_);              // the lineage of the repair under way
  uint64_t set_aside_from_ GUARDED_BY(mutex_) = 0;        // by it; 0: nothing
  EvaluationRule rule_;
  std::optional<ManifestStore> manifests_ GUARDED_BY(mutex_);
  std::map<SnapshotId, StoredShards> stored_ GUARDED_BY(mutex_);
  std::shared_ptr<const CheckpointReader> reader_ GUARDED_BY(mutex_);  // of the checkpoint that is being fetched
  std::optional<EventFiles> events_ GUARDED_BY(mutex_);
  std::map<std::string, LineFiles> lines_ GUARDED_BY(mutex_);       // by folder
  std::map<std::string, StepFiles> step_files_ GUARDED_BY(mutex_);  // likewise
  std::string address_ GUARDED_BY(mutex_);
  uint64_t beats_ = 0;  // of the thread that calls Beat
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_STORE_H_
