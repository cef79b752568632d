#include "chief/checkpoint/adopt.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/found_mark.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kPieceBytes = 4u << 20;

absl::Status CheckBelongs(const Manifest& manifest, const DirectoryMark& mark) {
  const auto refuse = [&](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat("step ", manifest.step(), " is not adopted: ", why));
  };
  if (manifest.job_id() != mark.job_id()) {
    return refuse(absl::StrCat("it is of job ", manifest.job_id(), ", and here is job ", mark.job_id(),
                               "; to begin a new job from its weights, set model.from"));
  }
  const std::optional<int64_t> parted = PartedAt(manifest, mark);
  if (parted.has_value() && manifest.step() > *parted) {
    return refuse(absl::StrCat("it is of lineage ", manifest.lineage(),
                               ", which the job left before that step because replicas differed"));
  }
  if (!BelongsTo(manifest, mark)) {
    return refuse(
        absl::StrCat("it is of lineage ", manifest.lineage(), ", which is not in the history of ", mark.lineage()));
  }
  return absl::OkStatus();
}

absl::Status CopyFile(const Storage& from, const std::string& source, Storage& to, const std::string& target) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> in, from.OpenFile(source));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> out, to.CreateFile(target, Access::kShared));
  std::vector<char> piece;
  for (uint64_t at = 0; at < in->size(); at += piece.size()) {
    piece.resize(std::min(kPieceBytes, in->size() - at));
    LS_RETURN_IF_ERROR(in->ReadAt(at, absl::MakeSpan(piece)));
    LS_RETURN_IF_ERROR(out->Append({piece.data(), piece.size()}));
  }
  LS_RETURN_IF_ERROR(out->Sync());
  return out->Close();
}

std::set<std::string> FoldersOf(const Manifest& manifest) {
  std::set<std::string> folders;
  for (const ManifestFile& file : manifest.files()) folders.emplace(ParentPath(file.path()));
  folders.erase("");
  return folders;
}

// All its files, durable in `folder`, and compared with their digests there.
absl::Status Copy(const CheckpointReader& checkpoint, Storage& to, const std::string& folder,
                  const CheckpointReader::OnBytes& on_bytes) {
  const Manifest& manifest = checkpoint.manifest();
  std::vector<std::string> files = {layout::kManifest};
  for (const ManifestFile& file : manifest.files()) files.push_back(file.path());
  for (const std::string& file : files) {
    LS_RETURN_IF_ERROR(CopyFile(checkpoint.storage(), JoinPath(checkpoint.path(), file), to, JoinPath(folder, file)));
  }
  for (const std::string& inner : FoldersOf(manifest)) LS_RETURN_IF_ERROR(to.SyncDirectory(JoinPath(folder, inner)));
  LS_RETURN_IF_ERROR(to.SyncDirectory(folder));
  LS_ASSIGN_OR_RETURN(const CheckpointReader copy, CheckpointReader::OpenFolder(to, folder));
  return copy.VerifyContent(/*stop=*/nullptr, on_bytes);
}

}  // namespace

absl::StatusOr<std::string> Adopt(const CheckpointReader& checkpoint, TermHold& hold, const DirectoryMark& mark,
                                  ManifestStore& manifests, std::vector<std::string>& messages,
                                  const CheckpointReader::OnBytes& on_bytes) {
  const Manifest& manifest = checkpoint.manifest();
  const std::string name = layout::StepName(manifest.step());
  LS_RETURN_IF_ERROR(CheckBelongs(manifest, mark));
  if (const auto there = manifests.accepted().find(name); there != manifests.accepted().end()) {
    const Manifest mine = there->second.manifest;
    if (!IsStateOf(mine.state_digest(), manifest) && !IsStateOf(manifest.state_digest(), mine)) {
      return absl::FailedPreconditionError(
          absl::StrCat(name, " is not adopted: the job has one of that step with state ", "digest ",
                       mine.state_digest(), ", and this one has ", manifest.state_digest()));
    }
    LS_ASSIGN_OR_RETURN(const bool good, manifests.StillGood(name, /*content=*/true, messages));
    if (good) return absl::StrCat(name, " counts already");
  }
  LS_RETURN_IF_ERROR(checkpoint.VerifyContent(/*stop=*/nullptr, on_bytes));
  LS_ASSIGN_OR_RETURN(const std::string folder, hold.NewCheckpoint(manifest.step(), FoldersOf(manifest)));
  absl::Status taken = Copy(checkpoint, hold.storage(), folder, on_bytes);
  if (taken.ok()) taken = manifests.Take(folder, manifest);
  if (!taken.ok()) {
    hold.Discard(folder).IgnoreError();
    return hold.Explain(taken);
  }
  const bool newest = manifests.accepted().rbegin()->first == name;
  return absl::StrCat(name, " is adopted, and pinned: retention leaves it until `lockstep checkpoint unpin`",
                      newest ? "; it is the newest one, from which the job goes on" : "");
}

}  // namespace lockstep::chief
