#include "chief/checkpoint/found_mark.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/term/directory_mark.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/protocol/ids.h"
#include "common/protocol/repair_lineage.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

// How many intact manifests there are of each (job, lineage).
using Votes = std::map<std::pair<std::string, std::string>, std::vector<Manifest>>;

// Manifests that are damaged or missing have no vote.
absl::StatusOr<Votes> CountVotes(const Storage& storage, absl::string_view directory) {
  Votes votes;
  const absl::StatusOr<std::vector<DirectoryEntry>> entries = storage.List(directory);
  if (absl::IsNotFound(entries.status())) return votes;
  LS_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.is_directory) continue;
    const std::string path = JoinPath(JoinPath(directory, entry.name), layout::kManifest);
    const absl::StatusOr<std::string> json = ReadWholeFile(storage, path, kMaxManifestBytes);
    if (absl::IsNotFound(json.status()) || absl::IsDataLoss(json.status())) continue;
    LS_RETURN_IF_ERROR(json.status());
    absl::StatusOr<Manifest> manifest = ParseManifest(*json, storage.Describe(path));
    if (!manifest.ok()) continue;
    manifest->clear_tensors();
    manifest->clear_files();
    const auto key = std::make_pair(manifest->job_id(), JobLineage(manifest->lineage()));
    votes[key].push_back(*std::move(manifest));
  }
  return votes;
}

bool Contradicts(const DirectoryMark& mark, const Votes& votes) {
  return !votes.empty() && std::none_of(votes.begin(), votes.end(), [&](const auto& vote) {
    return std::any_of(vote.second.begin(), vote.second.end(),
                       [&](const Manifest& manifest) { return BelongsTo(manifest, mark); });
  });
}

std::string Named(const Votes::value_type& vote) {
  return absl::StrCat("job '", vote.first.first, "' and lineage ", vote.first.second);
}

// Whether all votes are of one job, and of lineages of which repairs began each from the one before.
bool Agree(const Votes& votes) {
  return !votes.empty() && std::all_of(votes.begin(), votes.end(), [&](const auto& vote) {
    const auto& first = votes.begin()->first;
    return vote.first.first == first.first && FirstLineage(vote.first.second) == FirstLineage(first.second);
  });
}

// By their votes: the lineage of the latest repair, and the ones before it up to their newest audited checkpoint: what
// stands in place above that is what a repair had no time to set aside. REQUIRES: Agree(votes).
DirectoryMark MarkByVotes(const Votes& votes) {
  std::map<uint64_t, const Votes::value_type*, std::greater<>> newest_first;
  for (const auto& vote : votes) newest_first[RepairsOf(vote.first.second)] = &vote;
  DirectoryMark mark;
  mark.set_job_id(votes.begin()->first.first);
  mark.set_step_zero_published(true);
  for (const auto& [number, vote] : newest_first) {
    if (mark.lineage().empty()) {
      mark.set_lineage(vote->first.second);
      continue;
    }
    Ancestor* ancestor = mark.add_ancestors();
    ancestor->set_lineage(vote->first.second);
    for (const Manifest& manifest : vote->second) {
      if (IsAudited(manifest)) ancestor->set_last_step(std::max(ancestor->last_step(), manifest.step()));
    }
  }
  return mark;
}

absl::StatusOr<FoundMark> Rebuild(const Storage& storage, const std::string& fault, const Votes& votes) {
  if (!Agree(votes)) {
    const std::string why = votes.empty()
                                ? absl::StrCat("no manifest in ", storage.Describe(layout::kCheckpoints), " is intact")
                                : absl::StrCat("the manifests of its checkpoints are of ",
                                               absl::StrJoin(votes, ", of ", [](std::string* out, const auto& vote) {
                                                 absl::StrAppend(out, Named(vote));
                                               }));
    return absl::DataLossError(absl::StrCat(fault, ", and it cannot be rebuilt: ", why,
                                            ". Put a good copy of it back, or start again with another --dir; nothing "
                                            "was moved"));
  }
  FoundMark found;
  found.mark = MarkByVotes(votes);
  size_t manifests = 0;
  for (const auto& vote : votes) manifests += vote.second.size();
  found.repair =
      absl::StrCat(fault, "; it is written anew from ", manifests, " manifests of checkpoints, which are all of ",
                   votes.size() == 1 ? Named(*votes.begin())
                                     : absl::StrCat("job '", found.mark->job_id(), "' and lineage ",
                                                    found.mark->lineage(), " or those before it"));
  return found;
}

}  // namespace

std::optional<int64_t> PartedAt(const Manifest& manifest, const DirectoryMark& mark) {
  if (manifest.job_id() != mark.job_id()) return std::nullopt;
  int64_t shared = std::numeric_limits<int64_t>::max();
  bool audited_only = false;
  for (const Ancestor& ancestor : mark.ancestors()) {
    if (ancestor.last_step() == kNothingShared) {
      audited_only = true;
      if (ancestor.found_at() > 0) shared = std::min(shared, ancestor.found_at());
    } else {
      shared = std::min(shared, ancestor.last_step());
    }
    if (ancestor.lineage() != JobLineage(manifest.lineage())) continue;
    return audited_only && !IsAudited(manifest) ? kNothingShared : shared;
  }
  return std::nullopt;
}

bool BelongsTo(const Manifest& manifest, const DirectoryMark& mark) {
  if (manifest.job_id() != mark.job_id()) return false;
  if (JobLineage(manifest.lineage()) == mark.lineage()) return true;
  const std::optional<int64_t> parted = PartedAt(manifest, mark);
  return parted.has_value() && manifest.step() <= *parted;
}

DirectoryMark MarkOf(const CommitRecord& record) {
  DirectoryMark mark;
  mark.set_job_id(record.job_id());
  mark.set_lineage(record.lineage());
  mark.set_step_zero_published(record.begun());
  *mark.mutable_ancestors() = record.ancestors();
  return mark;
}

absl::StatusOr<FoundMark> FindMark(const Storage& storage, JobLog& log) {
  FoundMark found;
  const absl::StatusOr<std::optional<CommitRecord>> record = log.Read();
  if (absl::IsDataLoss(record.status())) {
    return absl::DataLossError(absl::StrCat(
        record.status().message(), ". Put a good copy of one of them back, or start again with another --dir"));
  }
  LS_RETURN_IF_ERROR(record.status());
  if (record->has_value() && !(*record)->lineage().empty()) {
    found.mark = MarkOf(**record);
    found.in_log = true;
    found.repair = absl::StrJoin(log.damage(), "; ");
    return found;
  }
  absl::StatusOr<std::optional<DirectoryMark>> read = ReadDirectoryMark(storage);
  if (read.ok()) {
    found.mark = *std::move(read);
    if (!found.mark.has_value() || !found.mark->sha256().empty()) return found;
  } else if (!absl::IsDataLoss(read.status())) {
    return read.status();
  }
  LS_ASSIGN_OR_RETURN(Votes votes, CountVotes(storage, layout::kCheckpoints));
  if (votes.empty()) {
    LS_ASSIGN_OR_RETURN(votes, CountVotes(storage, layout::kSetAside));
  }
  if (!read.ok()) return Rebuild(storage, std::string(read.status().message()), votes);
  if (!Contradicts(*found.mark, votes)) return found;
  return Rebuild(
      storage,
      absl::StrCat(storage.Describe(layout::kMark), " carries no digest and names job '", found.mark->job_id(),
                   "' and lineage ", found.mark->lineage(), ", of which no checkpoint is"),
      votes);
}

void TakeFromHead(const JobLog& log, FoundMark& found) {
  const CommitRecord head = log.head();
  if (head.lineage().empty()) return;
  found.mark = MarkOf(head);
  found.in_log = true;
}

absl::Status KeepDamagedMark(TermHold& hold, const FoundMark& found) {
  if (found.in_log || found.repair.empty()) return absl::OkStatus();
  return hold.KeepCopy(layout::kMark, "bad").status();
}

}  // namespace lockstep::chief
