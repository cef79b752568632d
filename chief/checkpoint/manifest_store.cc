#include "chief/checkpoint/manifest_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/bucket_naming.h"
#include "common/checkpoint_format/index.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/digest/sha256.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

std::string ManifestPath(const std::string& name) {
  return absl::StrCat(layout::kCheckpoints, "/", name, "/", layout::kManifest);
}

}  // namespace

ManifestStore::ManifestStore(TermHold& hold, JobLog& log, FoundCheckpoints found, const RetentionRule& retention)
    : hold_(hold),
      log_(log),
      accepted_(std::move(found.accepted)),
      unread_(std::move(found.unread)),
      retired_(std::move(found.retired)),
      set_aside_(std::move(found.set_aside)),
      carries_(log.head().lineage().empty()),
      retention_(retention) {
  const std::string best = BestInLog();
  if (accepted_.contains(best)) best_ = best;
  if (!accepted_.empty()) published_ = accepted_.rbegin()->first;
}

std::string ManifestStore::PathOf(const std::string& name) const {
  const auto found = accepted_.find(name);
  const bool known = found != accepted_.end() && !found->second.path.empty();
  return known ? found->second.path : JoinPath(layout::kCheckpoints, name);
}

std::string ManifestStore::BestInLog() const {
  const auto folder = layout::ParseCheckpointFolder(BaseName(log_.head().best()));
  return folder.has_value() ? layout::StepName(folder->step) : std::string();
}

void ManifestStore::Fill(CommitRecord& record) const {
  record.clear_live();
  for (const auto& [name, checkpoint] : accepted_) {
    const Manifest& manifest = checkpoint.manifest;
    LiveCheckpoint* live = record.add_live();
    live->set_step(manifest.step());
    live->set_prefix(PathOf(name));
    live->set_manifest_sha256(manifest.manifest_sha256());
    live->set_state_digest(manifest.state_digest());
    live->set_lineage(manifest.lineage());
    live->set_term(manifest.term());
    live->set_audited(IsAudited(manifest));
    live->set_pinned(checkpoint.pinned);
  }
  for (const auto& [name, live] : unread_) *record.add_live() = live;
  std::sort(record.mutable_live()->begin(), record.mutable_live()->end(),
            [](const LiveCheckpoint& a, const LiveCheckpoint& b) { return a.step() < b.step(); });
  if (!accepted_.empty()) record.set_begun(true);
  record.set_best(best_.empty() ? "" : PathOf(best_));
  record.clear_retired();
  for (const std::string& name : retired_) record.add_retired(JoinPath(layout::kCheckpoints, name));
  record.clear_set_aside();
  for (const auto& [path, why] : set_aside_) {
    SetAsideCheckpoint* aside = record.add_set_aside();
    aside->set_prefix(path);
    aside->set_why(why);
  }
}

absl::Status ManifestStore::Record(absl::string_view what) {
  recorded_ = false;
  LS_RETURN_IF_ERROR(log_.Change(what, [this](CommitRecord& record) { Fill(record); }));
  recorded_ = true;
  return absl::OkStatus();
}

absl::Status ManifestStore::AddFile(const StoredShards& shards, absl::string_view path, absl::string_view content,
                                    Manifest& manifest) {
  ManifestFile* entry = manifest.add_files();
  entry->set_path(std::string(path));
  entry->set_size(content.size());
  entry->set_sha256(Sha256Hex(content));
  return WriteNewFile(hold_.storage(), JoinPath(shards.directory, path), content, Access::kShared);
}

absl::Status ManifestStore::AddIndex(const StoredShards& shards, absl::string_view group, Manifest& manifest) {
  ShardIndex index;
  std::set<std::string> files;
  for (const ManifestTensor& tensor : shards.tensors) {
    if (tensor.group() != group) continue;
    index.total_size += tensor.end() - tensor.begin();
    index.weight_map.emplace(NameInFile(tensor.name(), group), BaseName(tensor.file()));
    files.insert(tensor.file());
  }
  if (files.size() <= 1) return absl::OkStatus();  // a single shard has no index
  return AddFile(shards, layout::IndexPath(group), EncodeShardIndex(index), manifest);
}

absl::Status ManifestStore::Stage(const StoredShards& shards, const CommitInfo& info, Manifest& manifest) {
  Storage& storage = hold_.storage();
  manifest.set_job_id(info.job_id);
  manifest.set_lineage(shards.id.lineage);
  manifest.set_step(static_cast<int64_t>(shards.id.step));
  manifest.set_term(hold_.term());
  manifest.set_fingerprint(info.fingerprint);
  manifest.set_kernel_plan(info.kernel_plan);
  manifest.set_state_digest(shards.id.digest);
  manifest.set_trained_ms(info.trained_ms);
  manifest.set_position(info.position);
  manifest.set_epoch(info.epoch);
  manifest.set_written_ms(info.written_ms);
  manifest.mutable_members()->Assign(info.members.begin(), info.members.end());
  manifest.set_evaluation_pending(info.evaluation_pending);
  *manifest.mutable_evaluations() = ToProto(info.evaluations);
  manifest.set_audited(info.audited || shards.id.step == 0);
  manifest.mutable_tensors()->Assign(shards.tensors.begin(), shards.tensors.end());
  manifest.mutable_files()->Assign(shards.files.begin(), shards.files.end());
  for (const absl::string_view group : kGroups) {
    LS_RETURN_IF_ERROR(AddIndex(shards, group, manifest));
  }
  LS_RETURN_IF_ERROR(AddFile(shards, layout::kWorkerStats, info.worker_stats_json, manifest));
  LS_RETURN_IF_ERROR(AddFile(shards, layout::kJob, info.job_yaml, manifest));
  LS_ASSIGN_OR_RETURN(const std::string json, EncodeManifest(manifest));
  LS_RETURN_IF_ERROR(WriteNewFile(storage, JoinPath(shards.directory, layout::kManifest), json, Access::kShared));
  std::set<std::string> directories = {shards.directory};
  for (const ManifestFile& file : manifest.files())
    directories.insert(JoinPath(shards.directory, ParentPath(file.path())));
  for (const std::string& directory : directories) LS_RETURN_IF_ERROR(storage.SyncDirectory(directory));
  return absl::OkStatus();
}

absl::StatusOr<ManifestStore::Unknown> ManifestStore::Judge(const std::string& name,
                                                            const absl::StatusOr<std::string>& json) {
  if (!json.ok()) return Unknown{"bad", std::string(json.status().message())};
  const std::string place = hold_.storage().Describe(ManifestPath(name));
  const absl::StatusOr<Manifest> manifest = ParseManifest(*json, place);
  if (IsDamage(manifest.status())) return Unknown{"bad", std::string(manifest.status().message())};
  // A format that this program does not know is not its own either.
  if (!manifest.ok() || manifest->term() != hold_.term()) {
    return Unknown{"late", absl::StrCat("an older chief published it after term ", hold_.term(), " was claimed")};
  }
  if (layout::StepName(manifest->step()) != name) {
    return Unknown{"bad", absl::StrCat(place, " is of step ", manifest->step())};
  }
  LS_RETURN_IF_ERROR(hold_.storage().SyncDirectory(layout::kCheckpoints));
  accepted_[name] = {*manifest, true};
  recorded_ = false;
  return Unknown{};
}

absl::Status ManifestStore::SettleUnknown(std::vector<std::string>& messages) {
  LS_RETURN_IF_ERROR(hold_.CheckCurrent());
  if (hold_.in_bucket()) return absl::OkStatus();  // what no record names is nothing there
  Storage& storage = hold_.storage();
  LS_RETURN_IF_ERROR(hold_.EnsureDirectory(layout::kCheckpoints));
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage.List(layout::kCheckpoints));
  for (const DirectoryEntry& entry : entries) {
    const bool known = accepted_.contains(entry.name) || unread_.contains(entry.name) || retired_.contains(entry.name);
    if (known || !layout::ParseStepName(entry.name)) continue;
    const absl::StatusOr<std::string> json = ReadWholeFile(storage, ManifestPath(entry.name), kMaxManifestBytes);
    if (!json.ok() && !absl::IsNotFound(json.status()) && !absl::IsDataLoss(json.status())) {
      messages.push_back(absl::StrCat("left ", entry.name, " alone: ", json.status().message()));
      continue;
    }
    LS_ASSIGN_OR_RETURN(const Unknown unknown, Judge(entry.name, json));
    if (unknown.why.empty()) continue;
    LS_ASSIGN_OR_RETURN(const std::string to, hold_.SetAside(JoinPath(layout::kCheckpoints, entry.name), unknown.why));
    messages.push_back(
        absl::StrCat("set aside ", entry.name, ": ", unknown.reason, "; it is now ", storage.Describe(to)));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ManifestStore::SameIsThere(const Manifest& mine, std::vector<std::string>& messages) {
  const std::string name = layout::StepName(mine.step());
  const auto it = accepted_.find(name);
  if (it == accepted_.end()) return false;
  LS_ASSIGN_OR_RETURN(const bool there, hold_.storage().Exists(PathOf(name)));
  if (!there) {  // removed by hand
    accepted_.erase(it);
    return false;
  }
  const Manifest& other = it->second.manifest;
  if (other.lineage() == mine.lineage()) {
    if (other.state_digest() == mine.state_digest()) return true;
    return absl::DataLossError(absl::StrCat("step ", mine.step(), " of lineage ", mine.lineage(),
                                            " was published with state digest ", other.state_digest(), " by term ",
                                            other.term(), " and is now ", mine.state_digest(),
                                            ": the same step was computed with other bits. Nothing was overwritten"));
  }
  const std::string lineage = other.lineage();
  LS_ASSIGN_OR_RETURN(const std::string to, SetAside(name, "abandoned"));
  messages.push_back(absl::StrCat("set aside ", name, ": it is of lineage ", lineage, ", which ", mine.lineage(),
                                  " replaces; it is now ", hold_.storage().Describe(to)));
  return false;
}

absl::StatusOr<PublishedCheckpoint> ManifestStore::Publish(StoredShards shards, const CommitInfo& info) {
  PublishedCheckpoint published;
  const auto give_up = [&](absl::Status error) {
    error = hold_.Explain(std::move(error));
    hold_.Discard(shards.directory).IgnoreError();
    return error;
  };
  if (absl::Status staged = Stage(shards, info, published.manifest); !staged.ok()) return give_up(staged);
  if (absl::Status swept = SettleUnknown(published.messages); !swept.ok()) return give_up(swept);
  const absl::StatusOr<bool> same = SameIsThere(published.manifest, published.messages);
  if (!same.ok()) return give_up(same.status());
  const std::string name = layout::StepName(published.manifest.step());
  if (*same) {
    published.existed = true;
    published.manifest = accepted_.at(name).manifest;
    published.path = PathOf(name);
    hold_.Discard(shards.directory).IgnoreError();
    if (recorded_) {
      published_ = name;
      return published;
    }
  } else {
    if (absl::Status freed = FreeName(name); !freed.ok()) return give_up(freed);
    const absl::StatusOr<std::string> placed = hold_.PlaceCheckpoint(shards.directory, published.manifest.step());
    if (!placed.ok()) return give_up(placed.status());
    accepted_[name] = {published.manifest, true, *placed};
  }
  published.path = PathOf(name);
  const std::string published_before = std::exchange(published_, name);
  const int64_t floor_before = std::exchange(audit_floor_, info.audit_floor);
  if (absl::Status failed = Commit(absl::StrCat(name, " committed"), info.keep_step, published.messages);
      !failed.ok()) {
    published_ = published_before;
    audit_floor_ = floor_before;
    return failed;
  }
  return published;
}

absl::Status ManifestStore::Take(const std::string& folder, const Manifest& manifest) {
  const std::string name = layout::StepName(manifest.step());
  LS_RETURN_IF_ERROR(FreeName(name));
  LS_ASSIGN_OR_RETURN(const std::string path, hold_.PlaceCheckpoint(folder, manifest.step()));
  accepted_[name] = {manifest, /*verified=*/true, path, /*pinned=*/true};
  const absl::Status recorded = Record(absl::StrCat(name, " adopted"));
  if (!recorded.ok()) accepted_.erase(name);
  return recorded;
}

absl::StatusOr<PublishedCheckpoint> ManifestStore::Amend(const SnapshotId& id, const EvaluationLedger& ledger,
                                                         int64_t keep_step) {
  const std::string name = layout::StepName(static_cast<int64_t>(id.step));
  const auto found = accepted_.find(name);
  if (found == accepted_.end() || found->second.manifest.lineage() != id.lineage ||
      found->second.manifest.state_digest() != id.digest) {
    return absl::NotFoundError(absl::StrCat(id.ToString(), " is not published"));
  }
  PublishedCheckpoint amended;
  amended.path = PathOf(name);
  amended.existed = true;
  amended.manifest = found->second.manifest;
  amended.manifest.set_evaluation_pending(false);
  amended.manifest.set_audited(IsAudited(amended.manifest));  // an earlier program did not write it
  *amended.manifest.mutable_evaluations() = ToProto(ledger);
  LS_ASSIGN_OR_RETURN(const std::string json, EncodeManifest(amended.manifest));
  LS_RETURN_IF_ERROR(hold_.Replace(JoinPath(amended.path, layout::kManifest), json));
  found->second.manifest = amended.manifest;
  LS_RETURN_IF_ERROR(Commit(absl::StrCat(name, " evaluated"), keep_step, amended.messages));
  return amended;
}

absl::Status ManifestStore::Commit(absl::string_view what, int64_t keep_step, std::vector<std::string>& messages) {
  const auto note = [&](absl::string_view task, const absl::Status& status) {
    if (!status.ok()) messages.push_back(absl::StrCat(task, ": ", status.message()));
  };
  const std::string best_before = best_;
  const bool unknown_before = best_unknown_;
  std::string best = best_;
  if (keep_step == 0) {
    best_.clear();
    best.clear();
    best_unknown_ = false;
  } else if (keep_step != kKeepNamed) {
    // Workers may still speak of a best state whose checkpoint was lost: what took its place stays.
    const std::string wanted = layout::StepName(keep_step);
    best = accepted_.contains(wanted) ? wanted : BestLeft();
    if (!best.empty()) best_unknown_ = false;
  }
  if (!best.empty()) best_ = best;
  const absl::StatusOr<std::vector<std::string>> superfluous = Superfluous();
  note("could not retire older checkpoints", superfluous.status());
  if (absl::Status failed = RecordWithout(superfluous.value_or(std::vector<std::string>()), what); !failed.ok()) {
    best_ = best_before;
    best_unknown_ = unknown_before;
    return failed;
  }
  note("could not renew the hint `latest`",
       hold_.Replace(layout::kLatest, absl::StrCat(BaseName(PathOf(accepted_.rbegin()->first)), "\n")));
  if (keep_step != kKeepNamed && !best.empty()) note("could not renew the hint `best`", HintBest());
  note("could not remove older checkpoints", RemoveRetired(messages));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ManifestStore::SetAside(absl::string_view base_name, absl::string_view why) {
  const std::string path = PathOf(std::string(base_name));
  const auto counts = accepted_.find(std::string(base_name));
  if (counts != accepted_.end()) {
    accepted_.erase(counts);
    if (hold_.in_bucket()) set_aside_[path] = std::string(why);
    LS_RETURN_IF_ERROR(Record(absl::StrCat(base_name, " set aside: ", why)));
  }
  return hold_.SetAside(path, why);
}

std::vector<FrozenSource> ManifestStore::FrozenSources() const {
  std::vector<FrozenSource> sources;
  for (auto it = accepted_.rbegin(); it != accepted_.rend(); ++it) {
    if (it->second.verified) sources.push_back({&it->second.manifest, PathOf(it->first)});
  }
  return sources;
}

std::string ManifestStore::NextUnverified() const {
  std::string postponed;
  for (auto it = accepted_.rbegin(); it != accepted_.rend(); ++it) {
    if (it->second.verified) continue;
    if (!postponed_.contains(it->first)) return it->first;
    if (postponed.empty()) postponed = it->first;
  }
  return postponed;
}

void ManifestStore::MarkVerified(const std::string& name, absl::string_view state_digest) {
  const auto found = accepted_.find(name);
  if (found != accepted_.end() && found->second.manifest.state_digest() == state_digest) found->second.verified = true;
}

}  // namespace lockstep::chief
