#include "chief/server/job_store.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "chief/events/event_files.h"
#include "chief/metagraph/artifact_store.h"
#include "chief/server/drain_list.h"
#include "chief/server/job_directory.h"
#include "chief/server/job_plan.h"
#include "chief/server/this_process.h"
#include "chief/stats/live_stats.h"
#include "chief/term/token.h"
#include "common/checkpoint_format/bucket_naming.h"
#include "common/checkpoint_format/naming.h"
#include "common/graph/serialize.h"
#include "common/graph/state_tensors.h"
#include "common/log/log.h"
#include "common/net/rpc.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

// As many as a job may have workers.
constexpr uint32_t kMaxShares = 4096;
constexpr uint64_t kMaxPageBytes = 4096;
// Of events and history. Every append stores the whole file again in a bucket.
constexpr uint64_t kMaxAppendedInBucket = 256u << 10;
constexpr uint64_t kMaxEventFile = 64u << 20;

}  // namespace

absl::StatusOr<std::string> JobStore::NameOfMetagraph(absl::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const MetaGraph metagraph, ParseMetaGraph(bytes));
  return Fingerprint(metagraph);
}

absl::StatusOr<std::unique_ptr<JobStore>> JobStore::Open(JobSetup& setup, int& exit_code,
                                                         std::optional<int64_t> succeeds) {
  exit_code = kExitStorage;
  LS_RETURN_IF_ERROR(CheckWritable(setup.directory));
  if (!IsInBucket(setup.directory) && !MayHoldCheckpoint(setup.directory)) {
    LS_RETURN_IF_ERROR(CheckRoom(setup.directory, setup.layout.TotalBytes()));
  }
  absl::StatusOr<std::unique_ptr<JobPlace>> place = JobPlace::Create(setup.directory);
  if (absl::IsInvalidArgument(place.status())) exit_code = kExitBadJob;
  LS_RETURN_IF_ERROR(place.status());
  return OpenAt(*std::move(place), setup, exit_code, succeeds);
}

absl::StatusOr<std::unique_ptr<JobStore>> JobStore::OpenAt(std::unique_ptr<JobPlace> place, JobSetup& setup,
                                                           int& exit_code, std::optional<int64_t> succeeds) {
  std::unique_ptr<JobStore> store(new JobStore);
  if (succeeds.has_value()) store->if_locked_ = IfLocked::kTakeOver;
  store->place_ = std::move(place);
  store->storage_ = &store->place_->storage();
  BucketStorage* const bucket = store->place_->bucket();
  store->log_ =
      bucket == nullptr ? std::make_unique<JobLog>(*store->storage_) : std::make_unique<JobLog>(bucket->objects());
  store->older_terms_ = std::make_unique<StorageTermRegistry>(*store->storage_);
  store->registry_ = std::make_unique<LogTermRegistry>(*store->log_, *store->older_terms_, succeeds);
  store->job_id_ = setup.policy.job;
  store->fingerprint_ = setup.fingerprint;
  store->metagraph_ = setup.metagraph_bytes;
  store->job_yaml_ = ResolvedYaml(setup.job);
  store->layout_ = ToCheckpointTensors(MakeStateLayout(setup.metagraph));
  const absl::Status taken = store->TakeOver(setup, exit_code);
  if (IsFenced(taken)) exit_code = kExitFenced;
  LS_RETURN_IF_ERROR(taken);
  return store;
}

absl::Status JobStore::SettleBest(const EvaluationRule& rule) {
  rule_ = rule;
  if (!rule.keep_best) return absl::OkStatus();
  std::vector<std::string> messages;
  const absl::Status settled = manifests_->SettleBest(rule, recovered_.ledger, messages);
  for (const std::string& message : messages) LS_LOG(warn, message);
  return settled;
}

std::string JobStore::PathOf(int64_t step) const {
  return manifests_.has_value() ? manifests_->PathOf(layout::StepName(step)) : layout::CheckpointPath(step);
}

std::string JobStore::DescribeCheckpoint(uint64_t step) {
  MutexLock lock(&mutex_);
  return Describe(PathOf(static_cast<int64_t>(step)));
}

absl::StatusOr<FoundBest> JobStore::FindBest() {
  MutexLock lock(&mutex_);
  FoundBest found;
  LS_ASSIGN_OR_RETURN(const std::string name, manifests_->FindBest(found.messages));
  if (name.empty()) return found;
  const Manifest& manifest = manifests_->accepted().at(name).manifest;
  found.step = static_cast<uint64_t>(manifest.step());
  found.value = manifest.evaluations().value();
  found.path = Describe(manifests_->PathOf(name));
  return found;
}

absl::Status JobStore::WriteAddress(const std::string& address) {
  MutexLock lock(&mutex_);
  address_ = address;
  if (!hold_->in_bucket()) LS_RETURN_IF_ERROR(chief::WriteAddress(*hold_, address_));
  return log_->Change(absl::StrCat("listening at ", address),
                      [&](CommitRecord& record) { record.mutable_owner()->set_address(address); });
}

absl::Status JobStore::Beat() {
  const auto term = static_cast<int64_t>(recovered_.term);
  const std::string beat = absl::StrCat("term ", term, ", beat ", ++beats_, "\n");
  if (place_->bucket() != nullptr) return place_->bucket()->PutFile(layout::AlivePath(term), beat);
  return ReplaceFile(*storage_, JoinPath(layout::StagingPath(term), "beat"), layout::kAlive, beat, Access::kShared);
}

absl::Status JobStore::RecordEnd(int exit_code) {
  MutexLock lock(&mutex_);
  return log_->Change(absl::StrCat("the chief ended with ", exit_code), [&](CommitRecord& record) {
    record.set_ended(true);
    record.set_exit_code(exit_code);
  });
}

absl::Status JobStore::KeepAddress() {
  MutexLock lock(&mutex_);
  LS_RETURN_IF_ERROR(hold_->TakeFreeLock(ThisProcess()));
  if (address_.empty() || hold_->in_bucket()) return absl::OkStatus();  // a record of a bucket keeps it
  const absl::Status found = ReadAddress(*storage_).status();
  // Somebody removed it, or the lock that it was bound to, or damaged it.
  const bool lost = absl::IsNotFound(found) || absl::IsFailedPrecondition(found) || absl::IsDataLoss(found);
  return lost ? chief::WriteAddress(*hold_, address_) : found;
}

absl::StatusOr<std::unique_ptr<ShardSink>> JobStore::MakeSink(const SnapshotId& id, uint32_t shares) {
  MutexLock lock(&mutex_);
  const auto open = [&]() EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<FrozenSource> sources;
    if (manifests_.has_value()) sources = manifests_->FrozenSources();
    return ShardSink::Open(*hold_, id, layout_, static_cast<int>(shares), sources);
  };
  auto sink = open();
  if (!absl::IsResourceExhausted(sink.status()) || !manifests_.has_value()) return sink;
  std::vector<std::string> messages;
  const absl::Status made = manifests_->MakeRoom(messages);
  for (const std::string& message : messages) LS_LOG(warn, message);
  if (!made.ok()) LS_LOG(warn, "no older checkpoint could be removed for a save: ", made.message());
  return open();
}

absl::StatusOr<bool> JobStore::HasFrozenShare(const SnapshotId& id) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<ShardSink> sink, saves_.Sink(id));
  return sink->ShareComplete(sink->shares() - 1);
}

absl::StatusOr<bool> JobStore::VerifyNext(const std::atomic<bool>* stop, std::vector<std::string>& messages) {
  std::string name;
  std::string path;
  {
    MutexLock lock(&mutex_);
    name = manifests_->NextUnverified();
    path = manifests_->PathOf(name);
  }
  if (name.empty()) return false;
  const auto reader = CheckpointReader::Open(*storage_, path);
  const absl::Status content = reader.ok() ? reader->VerifyContent(stop, nullptr, 1) : reader.status();
  if (absl::IsCancelled(content)) return content;
  MutexLock lock(&mutex_);
  if (content.ok()) {
    manifests_->MarkVerified(name, reader->manifest().state_digest());
    return true;
  }
  if (!manifests_->accepted().contains(name)) return true;  // retention was faster
  // Read again with nothing else going on: only what is damaged then is set aside.
  const absl::Status read = manifests_->StillGood(name, /*content=*/true, messages).status();
  if (!read.ok()) manifests_->Postpone(name);
  LS_RETURN_IF_ERROR(hold_->Explain(read));
  return true;
}

void JobStore::AbandonSave(const SnapshotId& id, const std::shared_ptr<OpenSaves::Save>& save) {
  OpenSaves::Abandon(save);
  MutexLock lock(&mutex_);
  stored_.erase(id);
}

absl::StatusOr<ShareReceiver> JobStore::Receive(const SnapshotId& id, uint32_t share, uint32_t shares,
                                                absl::string_view tensor_digests, absl::string_view leaf_digests) {
  LS_ASSIGN_OR_RETURN(std::shared_ptr<ShardSink> sink, saves_.Sink(id));
  if (shares != static_cast<uint32_t>(sink->shares())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the save of ", id.ToString(), " is cut into ", sink->shares(), " shares, not ", shares));
  }
  return ShareReceiver::Begin(std::move(sink), share, tensor_digests, leaf_digests);
}

absl::Status JobStore::CheckShareComplete(const SnapshotId& id, uint32_t share) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<ShardSink> sink, saves_.Sink(id));
  if (share < static_cast<uint32_t>(sink->shares()) && sink->ShareComplete(static_cast<int>(share))) {
    return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat("the save was begun anew while share ", share, " came"));
}

absl::StatusOr<std::string> JobStore::FinishShards(const SnapshotId& id, const std::shared_ptr<OpenSaves::Save>& save) {
  const absl::StatusOr<std::shared_ptr<ShardSink>> sink = saves_.Sink(id, save);
  if (absl::IsFailedPrecondition(sink.status())) return absl::CancelledError(sink.status().message());
  LS_RETURN_IF_ERROR(sink.status());
  MutexLock lock(&mutex_);
  LS_ASSIGN_OR_RETURN(StoredShards stored, (*sink)->Finish());
  std::string digest = stored.id.digest;
  stored_.insert_or_assign(id, std::move(stored));
  return digest;
}

absl::StatusOr<PublishedCheckpoint> JobStore::Publish(const SnapshotId& id, CommitInfo info) {
  MutexLock lock(&mutex_);
  const auto found = stored_.find(id);
  if (found == stored_.end()) return absl::InternalError(absl::StrCat(id.ToString(), " is not stored"));
  absl::StatusOr<PublishedCheckpoint> published = PublishStored(found->second, std::move(info));
  if (!published.ok()) return hold_->Explain(published.status());
  stored_.erase(found);
  saves_.Close(id);
  reader_.reset();  // retention may remove what it holds open, and the room comes back when nobody does
  return published;
}

absl::StatusOr<PublishedCheckpoint> JobStore::PublishStored(const StoredShards& shards, CommitInfo info) {
  info.job_id = job_id_;
  info.fingerprint = fingerprint_;
  info.job_yaml = job_yaml_;
  info.written_ms = absl::ToUnixMillis(absl::Now());
  return manifests_->Publish(shards, info);
}

absl::Status JobStore::ExplainMissing(const absl::Status& error) const {
  // Of a directory that is not mounted for a moment nothing is there.
  LS_ASSIGN_OR_RETURN(const int64_t newest, registry_->Newest());
  return newest >= hold_->term() ? absl::DataLossError(absl::StrCat("it was removed: ", error.message())) : error;
}

absl::StatusOr<PublishedCheckpoint> JobStore::Amend(const SnapshotId& id, const EvaluationLedger& ledger,
                                                    int64_t keep_step) {
  MutexLock lock(&mutex_);
  absl::StatusOr<PublishedCheckpoint> amended = manifests_->Amend(id, ledger, keep_step);
  if (absl::IsNotFound(amended.status())) return ExplainMissing(amended.status());
  if (!amended.ok()) return hold_->Explain(amended.status());
  return amended;
}

absl::StatusOr<std::string> JobStore::ChangeCheckpoint(CheckpointChange change, int64_t step) {
  MutexLock lock(&mutex_);
  absl::StatusOr<std::string> changed = manifests_->Change(change, step);
  if (!changed.ok()) return hold_->Explain(changed.status());
  return changed;
}

absl::Status JobStore::StorePlan(const std::string& hash, const std::string& bytes, const std::string& data_digest) {
  MutexLock lock(&mutex_);
  LS_RETURN_IF_ERROR(StoreJobPlan(*hold_, *log_, {hash, data_digest}, bytes));
  KeepPlan(hash, bytes);
  return absl::OkStatus();
}

absl::Status JobStore::StoreDrains(const std::vector<Drain>& drains) {
  MutexLock lock(&mutex_);
  return log_->Change("drains", [&](CommitRecord& record) { SetDrains(drains, record); });
}

absl::StatusOr<WorkerStatsFile> JobStore::ReadStats() { return ReadLiveStats(*storage_); }

absl::Status JobStore::WriteStats(const std::string& json) {
  MutexLock lock(&mutex_);
  LS_RETURN_IF_ERROR(hold_->EnsureDirectory(layout::kStats));
  return hold_->Replace(layout::kLiveStats, json);
}

absl::Status JobStore::WriteText(const char* folder, const std::string& name, const std::string& text) {
  MutexLock lock(&mutex_);
  LS_RETURN_IF_ERROR(hold_->EnsureDirectory(folder));
  return hold_->Replace(absl::StrCat(folder, "/", name, ".txt"), text);
}

std::string JobStore::ReadPage() const {
  const absl::StatusOr<std::string> url = ReadWholeFile(*storage_, layout::kPage, kMaxPageBytes);
  return url.ok() ? std::string(absl::StripAsciiWhitespace(*url)) : "";
}

absl::Status JobStore::AppendEvents(const std::string& records) {
  MutexLock lock(&mutex_);
  if (!events_.has_value()) {
    const TermOwner owner = ThisProcess();
    events_.emplace(*storage_, absl::StrCat(owner.host(), ".", owner.pid(), ".", hold_->term()),
                    hold_->in_bucket() ? kMaxAppendedInBucket : kMaxEventFile);
  }
  // A file of a chief that was followed would make readers drop what its successor told.
  LS_RETURN_IF_ERROR(hold_->CheckCurrent());
  if (events_->NeedsFile()) LS_RETURN_IF_ERROR(hold_->EnsureDirectory(layout::kEvents));
  return events_->Append(absl::Now(), records);
}

absl::Status JobStore::StoreMetagraphEvents(const std::function<std::string()>& make_records) {
  MutexLock lock(&mutex_);
  return StoreGraphEvents(*hold_, absl::Now(), fingerprint_, make_records);
}

absl::Status JobStore::AppendLines(const char* folder, const std::string& lines) {
  if (lines.empty()) return absl::OkStatus();
  MutexLock lock(&mutex_);
  LS_RETURN_IF_ERROR(hold_->EnsureDirectory(ParentPath(folder)));
  LS_RETURN_IF_ERROR(hold_->EnsureDirectory(folder));
  LineFiles::Limits limits;
  if (hold_->in_bucket()) limits = {.file_bytes = kMaxAppendedInBucket, .files = 256};
  return lines_.try_emplace(folder, *storage_, folder, hold_->term(), limits).first->second.Append(lines);
}

absl::StatusOr<std::string> JobStore::ReadMetagraph(const std::string& fingerprint) {
  if (fingerprint == fingerprint_) return metagraph_;
  MutexLock lock(&mutex_);
  return LoadArtifact(*storage_, layout::kMetagraphs, fingerprint, NameOfMetagraph);
}

absl::StatusOr<std::string> JobStore::ReadPlan(const std::string& hash) {
  {
    MutexLock lock(&plan_mutex_);
    if (hash == plan_hash_) return plan_;
  }
  MutexLock lock(&mutex_);
  LS_ASSIGN_OR_RETURN(std::string plan, LoadJobPlan(*storage_, hash));
  KeepPlan(hash, plan);
  return plan;
}

void JobStore::KeepPlan(const std::string& hash, const std::string& plan) {
  MutexLock lock(&plan_mutex_);
  plan_hash_ = hash;
  plan_ = plan;
}

absl::StatusOr<Share> JobStore::ShareOf(uint32_t share, uint32_t shares) const {
  if (shares == 0 || shares > kMaxShares || share >= shares) {
    return absl::InvalidArgumentError(absl::StrCat("there is no share ", share, " of ", shares));
  }
  LS_ASSIGN_OR_RETURN(SharePlan plan, PlanShares(layout_, static_cast<int>(shares)));
  return std::move(plan.shares[share]);
}

absl::StatusOr<std::shared_ptr<const CheckpointReader>> JobStore::ReaderOf(const SnapshotId& id) {
  MutexLock lock(&mutex_);
  const auto is_wanted = [&](const CheckpointReader& reader) {
    return reader.manifest().lineage() == id.lineage && reader.manifest().step() == static_cast<int64_t>(id.step) &&
           reader.manifest().state_digest() == id.digest;
  };
  if (reader_ != nullptr && is_wanted(*reader_)) return reader_;
  absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(*storage_, PathOf(static_cast<int64_t>(id.step)));
  if (absl::IsNotFound(reader.status())) return ExplainMissing(reader.status());
  LS_RETURN_IF_ERROR(reader.status());
  if (!is_wanted(*reader)) return absl::DataLossError(absl::StrCat(id.ToString(), " is not published here"));
  reader_ = std::make_shared<const CheckpointReader>(*std::move(reader));
  return reader_;
}

// Workers read side by side, and behind nothing else that the storage does.
absl::StatusOr<std::string> JobStore::ReadShare(const SnapshotId& id, const Share& share, uint64_t offset,
                                                uint64_t bytes) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const CheckpointReader> reader, ReaderOf(id));
  std::string out(bytes, '\0');
  LS_RETURN_IF_ERROR(reader->ReadShare(layout_, share, offset, absl::MakeSpan(out)));
  return out;
}

}  // namespace lockstep::chief
