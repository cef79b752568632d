// JobStore: taking the directory over, up to the record that says so.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/recovery.h"
#include "chief/metagraph/artifact_store.h"
#include "chief/server/drain_list.h"
#include "chief/server/job_directory.h"
#include "chief/server/job_plan.h"
#include "chief/server/job_retention.h"
#include "chief/server/job_store.h"
#include "chief/server/this_process.h"
#include "chief/stats/stats_tracker.h"
#include "chief/term/directory_mark.h"
#include "chief/term/other_chief.h"
#include "chief/term/token.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/digest/random_secret.h"
#include "common/digest/state_digest.h"
#include "common/log/log.h"
#include "common/net/listen.h"
#include "common/net/rpc.h"
#include "common/protocol/messages.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

namespace fs = std::filesystem;

}  // namespace

absl::Status JobStore::TakeOver(JobSetup& setup, int& exit_code) {
  MutexLock lock(&mutex_);
  LS_ASSIGN_OR_RETURN(const FoundMark found, Claim(setup, exit_code));
  exit_code = kExitStorage;
  LS_ASSIGN_OR_RETURN(Recovered state, Recover(*hold_, *log_, found));
  for (const std::string& message : state.messages) LS_LOG(warn, message);
  if (state.newest.has_value()) {
    exit_code = kExitBadJob;
    LS_RETURN_IF_ERROR(CheckGoesOn(setup, *state.newest));
    exit_code = kExitStorage;
  } else if (!hold_->in_bucket()) {
    LS_RETURN_IF_ERROR(CheckRoom(setup.directory, setup.layout.TotalBytes()));
  }
  if (found.mark.has_value()) mark_ = *found.mark;
  if (!found.mark.has_value()) LS_RETURN_IF_ERROR(BeginHistory());
  setup.policy.lineage = mark_.lineage();
  LS_RETURN_IF_ERROR(
      StoreArtifact(*hold_, layout::kMetagraphs, fingerprint_, setup.metagraph_bytes, NameOfMetagraph).status());
  manifests_.emplace(*hold_, *log_, std::move(state.checkpoints), RetentionOf(setup.job, setup.facts.train_samples));
  recovered_.term = static_cast<Term>(hold_->term());
  std::string trained_with;
  if (state.newest.has_value()) {
    TakeUp(*state.newest);
    trained_with = state.newest->manifest().kernel_plan();
    reader_ = std::make_shared<const CheckpointReader>(*std::move(state.newest));
    initial_.reset();
  } else {
    LS_RETURN_IF_ERROR(PublishStepZero(setup));
  }
  LS_RETURN_IF_ERROR(SettleBest(setup.policy.training.evaluation));
  TakeUpHosts();
  LS_RETURN_IF_ERROR(Settle(setup, found.in_log, trained_with));
  return state.used_unlisted ? absl::OkStatus() : SweepBucket();
}

absl::StatusOr<std::unique_ptr<TermHold>> JobStore::Hold() {
  if (place_->bucket() == nullptr) return TermHold::Take(*storage_, *registry_, ThisProcess(), if_locked_);
  LS_ASSIGN_OR_RETURN(std::unique_ptr<BucketHold> hold, BucketHold::Take(*place_->bucket(), *registry_, ThisProcess()));
  bucket_hold_ = hold.get();
  return hold;
}

absl::Status JobStore::SweepBucket() {
  if (bucket_hold_ == nullptr) return absl::OkStatus();
  std::vector<std::string> messages;
  const absl::Status swept = bucket_hold_->Sweep(log_->head(), messages);
  for (const std::string& message : messages) LS_LOG(warn, message);
  if (IsFenced(swept)) return swept;
  if (!swept.ok()) LS_LOG(warn, "what earlier chiefs left in the bucket stays for now: ", swept.message());
  return absl::OkStatus();
}

absl::Status JobStore::Settle(const JobSetup& setup, bool in_log, const std::string& trained_with) {
  if (mark_.ancestors_size() > 0) {
    const Ancestor& nearest = mark_.ancestors(0);
    recovered_.repair =
        PastRepair{static_cast<uint64_t>(nearest.found_at()), {nearest.hosts().begin(), nearest.hosts().end()}};
  }
  recovered_.oldest_audited = static_cast<uint64_t>(manifests_->OldestAudited());
  const CommitRecord head = log_->head();
  const auto logged = in_log ? std::optional(JobPlan{head.kernel_plan(), head.data_digest()}) : std::nullopt;
  LS_ASSIGN_OR_RETURN(const JobPlan plan, FindJobPlan(*storage_, logged, trained_with, setup.facts.train_sha256));
  recovered_.plan_hash = plan.hash;
  recovered_.data_digest = plan.hash.empty() ? "" : plan.data_digest;
  recovered_.drains = DrainsOf(head);
  if (!in_log) {
    LS_ASSIGN_OR_RETURN(recovered_.drains, ReadOlderDrains(*storage_));
  }
  const std::string what =
      in_log ? absl::StrCat("taken over at step ", recovered_.checkpoint.step) : "the job's history, as it was found";
  LS_RETURN_IF_ERROR(log_->Change(what, [&](CommitRecord& record) {
    record.set_job_id(job_id_);
    record.set_lineage(mark_.lineage());
    *record.mutable_ancestors() = mark_.ancestors();
    record.set_kernel_plan(recovered_.plan_hash);
    record.set_data_digest(recovered_.data_digest);
    SetDrains(recovered_.drains, record);
    manifests_->Fill(record);
  }));
  return MarkAsLogged(*hold_);
}

absl::StatusOr<FoundMark> JobStore::Claim(const JobSetup& setup, int& exit_code) {
  absl::StatusOr<FoundMark> found = FindMark(*storage_, *log_);
  exit_code = StorageExitCode(found.status());
  LS_RETURN_IF_ERROR(found.status());
  LS_RETURN_IF_ERROR(CheckMayClaim(setup, found->mark, exit_code));
  if (!found->mark.has_value() || !found->mark->step_zero_published()) {
    LS_ASSIGN_OR_RETURN(initial_, InitialStateOf(setup, exit_code));
  }
  const std::string address_in_log = log_->head().owner().address();
  absl::StatusOr<std::unique_ptr<TermHold>> hold = Hold();
  exit_code = StorageExitCode(hold.status());
  LS_RETURN_IF_ERROR(hold.status());
  hold_ = *std::move(hold);
  TakeFromHead(*log_, *found);
  exit_code = kExitBadJob;
  if (found->mark.has_value()) LS_RETURN_IF_ERROR(CheckSameJob(*storage_, *found->mark, job_id_));
  exit_code = kExitStorage;
  LS_RETURN_IF_ERROR(hold_->CheckCurrent());  // else a newer chief's record may be under way
  LS_RETURN_IF_ERROR(log_->Sweep());
  LS_RETURN_IF_ERROR(KeepDamagedMark(*hold_, *found));
  if (!found->repair.empty()) LS_LOG(warn, found->repair);
  if (hold_->in_bucket()) {
    earlier_address_ = address_in_log;
  } else if (const auto earlier = ReadAddress(*storage_); earlier.ok()) {
    earlier_address_ = *earlier;
  }
  absl::StatusOr<std::string> token = LoadOrMakeToken(*hold_);
  exit_code = TokenExitCode(token.status());
  LS_RETURN_IF_ERROR(token.status());
  token_ = *std::move(token);
  return found;
}

absl::Status JobStore::CheckMayClaim(const JobSetup& setup, const std::optional<DirectoryMark>& mark, int& exit_code) {
  exit_code = kExitBadJob;
  if (mark.has_value()) LS_RETURN_IF_ERROR(CheckSameJob(*storage_, *mark, job_id_));
  // Who holds the lock is said by whoever tries to take it.
  const bool lock_is_link = fs::is_symlink(storage_->Describe(layout::kLock));
  const bool locked = if_locked_ == IfLocked::kRefuse && !CheckNoOtherChief(*storage_).ok();
  if (lock_is_link || locked) return absl::OkStatus();
  const absl::Status token = ReadToken(*storage_).status();
  exit_code = TokenExitCode(token);
  if (!absl::IsNotFound(token)) LS_RETURN_IF_ERROR(token);
  if (mark.has_value()) LS_RETURN_IF_ERROR(CheckNewestGoesOn(setup, *mark, exit_code));
  exit_code = kExitBadJob;
  return setup.listen.empty() ? absl::OkStatus() : CheckListen(setup.listen);
}

absl::Status JobStore::CheckNewestGoesOn(const JobSetup& setup, const DirectoryMark& mark, int& exit_code) {
  const absl::StatusOr<std::vector<CheckpointSummary>> all =
      place_->bucket() == nullptr ? ListCheckpoints(*storage_)
                                  : ListCheckpoints(*storage_, CheckpointsOfRecord(log_->head()));
  if (!all.ok()) return absl::OkStatus();
  for (const CheckpointSummary& summary : *all) {
    if (!summary.status.ok() || !BelongsTo(summary.manifest, mark)) continue;
    const auto reader = CheckpointReader::Open(*storage_, summary.path);
    if (!reader.ok()) continue;
    exit_code = kExitBadJob;
    absl::Status goes_on = CheckResume(setup, *storage_, *reader);
    if (const std::string& plan = summary.manifest.kernel_plan(); goes_on.ok() && !plan.empty()) {
      exit_code = kExitStorage;
      goes_on = CheckPlanIsThere(*storage_, plan);
    }
    if (goes_on.ok() || reader->VerifyContent().ok()) return goes_on;  // a damaged one speaks against nothing
  }
  return absl::OkStatus();
}

absl::Status JobStore::CheckGoesOn(const JobSetup& setup, const CheckpointReader& newest) {
  LS_RETURN_IF_ERROR(CheckResume(setup, *storage_, newest));
  LS_ASSIGN_OR_RETURN(const JobDifference difference, DifferenceTo(setup.job, *storage_, newest));
  if (setup.job.model().has_from()) {
    LS_LOG(info, "model.from is not read: the job goes on from step ", newest.manifest().step());
  }
  for (const JobDifference::Setting& setting : difference.allowed) {
    LS_LOG(info, "since the last save the job changed ", setting.key, ": ", setting.before, " -> ", setting.after);
  }
  return absl::OkStatus();
}

absl::Status JobStore::BeginHistory() {
  LS_ASSIGN_OR_RETURN(const std::string lineage, RandomSecretHex(16));
  mark_.set_job_id(job_id_);
  mark_.set_lineage(lineage);
  LS_RETURN_IF_ERROR(log_->Change("the job begins", [&](CommitRecord& record) {
    record.set_job_id(job_id_);
    record.set_lineage(lineage);
  }));
  return MarkAsLogged(*hold_);
}

absl::Status JobStore::PublishStepZero(const JobSetup& setup) {
  if (!initial_.has_value()) return absl::InternalError("a job that begins has made its first state");
  const InitialState begin = *std::exchange(initial_, std::nullopt);
  const std::vector<Tensor>& initial = begin.tensors;
  if (begin.trained.has_value()) LS_RETURN_IF_ERROR(WriteWarmStart(*begin.trained));
  std::vector<TensorBytes> tensors;
  for (size_t t = 0; t < initial.size(); ++t) {
    const auto bytes = initial[t].bytes();
    tensors.push_back({&layout_[t].spec, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
  }
  const StateDigests digests = DigestState(tensors, CheckpointReader::kReadingThreads);
  const SnapshotId id{setup.policy.lineage, 0, digests.state};
  const int shares = setup.policy.frozen_share ? 2 : 1;
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<ShardSink> sink, ShardSink::Open(*hold_, id, layout_, shares));
  for (int share = 0; share < shares; ++share) {
    for (const SharePiece& piece : sink->share(share).pieces) {
      const auto tensor = static_cast<size_t>(piece.tensor);
      for (uint64_t leaf = 0; leaf < LeafCount(piece.bytes); ++leaf) {
        const absl::string_view bytes = tensors[tensor].bytes.substr(leaf * kLeafBytes, kLeafBytes);
        const uint64_t at = piece.begin + leaf * kLeafBytes;
        LS_RETURN_IF_ERROR(sink->AcceptLeaf(share, at, bytes, Sha256Of(bytes)));
      }
    }
  }
  LS_ASSIGN_OR_RETURN(const StoredShards stored, sink->Finish());
  CommitInfo info;
  info.audited = true;
  info.worker_stats_json = "{}\n";
  LS_RETURN_IF_ERROR(PublishStored(stored, std::move(info)).status());
  recovered_.checkpoint = id;
  return absl::OkStatus();
}

absl::Status JobStore::WriteWarmStart(const WarmStartReport& report) {
  LS_LOG(info, "model.from: ", report.Line());
  LS_RETURN_IF_ERROR(hold_->EnsureDirectory(layout::kStats));
  return hold_->Replace(layout::kWarmStart, report.Text());
}

void JobStore::TakeUp(const CheckpointReader& newest) {
  const Manifest& manifest = newest.manifest();
  recovered_.checkpoint = {manifest.lineage(), static_cast<uint64_t>(manifest.step()), manifest.state_digest()};
  recovered_.trained_for = absl::Milliseconds(manifest.trained_ms());
  recovered_.evaluated = !manifest.evaluation_pending();
  recovered_.ledger = FromProto(manifest.evaluations());
}

// Without statistics that can be read every host begins anew.
void JobStore::TakeUpHosts() {
  const absl::StatusOr<WorkerStatsFile> stats = ReadStats();
  if (!stats.ok()) return;
  for (const HostStats& host : stats->hosts()) {
    const int64_t failures = std::clamp<int64_t>(host.failures(), 0, std::numeric_limits<uint32_t>::max() / 2);
    recovered_.hosts.push_back({host.host(), static_cast<uint32_t>(failures), host.excluded(), host.cause()});
  }
}

}  // namespace lockstep::chief
