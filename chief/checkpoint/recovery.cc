#include "chief/checkpoint/recovery.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/protocol/ids.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr char kAcceptedFile[] = "accepted.json";
constexpr uint64_t kMaxAcceptedBytes = 64u << 20;

// The list of the newest earlier term that stored one. What that term did not list and an older one published came
// late.
absl::StatusOr<std::optional<AcceptedManifests>> EarlierList(const TermHold& hold) {
  for (int64_t term = hold.term() - 1; term > 0; --term) {
    const std::string path = JoinPath(layout::TermPath(term), kAcceptedFile);
    const absl::StatusOr<std::string> json = ReadWholeFile(hold.storage(), path, kMaxAcceptedBytes);
    if (absl::IsNotFound(json.status())) continue;
    LS_RETURN_IF_ERROR(json.status());
    AcceptedManifests list;
    LS_RETURN_IF_ERROR(FromJson(*json, hold.storage().Describe(path), &list));
    return std::optional<AcceptedManifests>(std::move(list));
  }
  return std::optional<AcceptedManifests>();
}

bool CameLate(const Manifest& manifest, const std::optional<AcceptedManifests>& list) {
  if (!list || manifest.term() >= list->term()) return false;
  return std::none_of(list->manifests().begin(), list->manifests().end(), [&](const AcceptedManifest& accepted) {
    return accepted.manifest_sha256() == manifest.manifest_sha256();
  });
}

absl::Status StoreList(TermHold& hold, const AcceptedCheckpoints& accepted) {
  AcceptedManifests list;
  list.set_term(hold.term());
  for (auto it = accepted.rbegin(); it != accepted.rend(); ++it) {
    AcceptedManifest* entry = list.add_manifests();
    entry->set_directory(it->first);
    entry->set_manifest_sha256(it->second.manifest.manifest_sha256());
  }
  return hold.Replace(JoinPath(layout::TermPath(hold.term()), kAcceptedFile), ToJson(list));
}

// Only damage lets a checkpoint be set aside. An error of the place (permissions, a device, a newer format) proves
// nothing.
bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsInvalidArgument(status) || absl::IsOutOfRange(status);
}

class Scan {
 public:
  Scan(TermHold& hold, const std::optional<DirectoryMark>& mark) : hold_(hold), mark_(mark) {}

  absl::StatusOr<Recovered> Run() {
    LS_ASSIGN_OR_RETURN(earlier_, EarlierList(hold_));
    LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, hold_.storage().List(layout::kCheckpoints));
    std::vector<std::pair<int64_t, std::string>> found;
    for (const DirectoryEntry& entry : entries) {
      if (const auto step = layout::ParseStepName(entry.name)) found.emplace_back(*step, entry.name);
    }
    std::sort(found.rbegin(), found.rend());
    for (const auto& [step, name] : found) LS_RETURN_IF_ERROR(Look(name));
    if (!recovered_.newest && mark_ && mark_->step_zero_published()) return NothingLeft();
    // A chief that died between its rename and its sync left what a crash of the machine could still take away.
    LS_RETURN_IF_ERROR(hold_.storage().SyncDirectory(layout::kCheckpoints));
    LS_RETURN_IF_ERROR(StoreList(hold_, recovered_.accepted));
    return std::move(recovered_);
  }

 private:
  absl::Status Look(const std::string& name) {
    absl::StatusOr<CheckpointReader> reader =
        CheckpointReader::Open(hold_.storage(), JoinPath(layout::kCheckpoints, name));
    if (!reader.ok()) return RefuseIfDamaged(name, reader.status());
    const Manifest& manifest = reader->manifest();
    if (CameLate(manifest, earlier_)) {
      return Refuse(name, "late",
                    absl::StrCat("the chief of term ", manifest.term(), " published it after term ", earlier_->term(),
                                 " had taken over"));
    }
    if (mark_ && !BelongsTo(manifest, *mark_)) {
      return Refuse(name, "abandoned",
                    absl::StrCat("it is of job ", manifest.job_id(), " and lineage ", manifest.lineage(),
                                 ", which is not in the history of ", mark_->lineage()));
    }
    const bool verify = !recovered_.newest.has_value();  // the newest good one; older ones when they are needed
    if (verify) {
      if (absl::Status content = reader->VerifyContent(); !content.ok()) return RefuseIfDamaged(name, content);
    }
    recovered_.accepted[name] = {manifest, verify};
    if (verify) recovered_.newest.emplace(*std::move(reader));
    return absl::OkStatus();
  }

  absl::Status RefuseIfDamaged(const std::string& name, const absl::Status& status) {
    return IsDamage(status) ? Refuse(name, "bad", status.message()) : status;
  }

  absl::Status Refuse(const std::string& name, absl::string_view why, absl::string_view reason) {
    reasons_.push_back(absl::StrCat(name, ": ", reason));
    LS_ASSIGN_OR_RETURN(const std::string to, hold_.SetAside(JoinPath(layout::kCheckpoints, name), why));
    recovered_.messages.push_back(
        absl::StrCat("set aside ", name, ": ", reason, ". It is now ", hold_.storage().Describe(to)));
    return absl::OkStatus();
  }

  absl::Status NothingLeft() const {
    return absl::DataLossError(
        absl::StrCat("no checkpoint in ", hold_.storage().Describe(layout::kCheckpoints),
                     " verifies, and this job has been trained before",
                     reasons_.empty() ? "" : absl::StrCat(" (", absl::StrJoin(reasons_, "; "), ")"),
                     ". Put a good one back (bad ones are in ", hold_.storage().Describe(layout::kSetAside),
                     "), or start again with another --dir; training does not restart from random weights by itself"));
  }

  TermHold& hold_;
  const std::optional<DirectoryMark>& mark_;
  std::optional<AcceptedManifests> earlier_;
  Recovered recovered_;
  std::vector<std::string> reasons_;
};

}  // namespace

bool BelongsTo(const Manifest& manifest, const DirectoryMark& mark) {
  if (manifest.job_id() != mark.job_id()) return false;
  const Lineage lineage = JobLineage(manifest.lineage());
  if (lineage == mark.lineage()) return true;
  int64_t shared = manifest.step();
  for (const Ancestor& ancestor : mark.ancestors()) {
    shared = std::min(shared, ancestor.last_step());
    if (ancestor.lineage() == lineage) return manifest.step() <= shared;
  }
  return false;
}

absl::StatusOr<Recovered> Recover(TermHold& hold, const std::optional<DirectoryMark>& mark) {
  return Scan(hold, mark).Run();
}

}  // namespace lockstep::chief
