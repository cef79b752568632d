#include "chief/metagraph/artifact_store.h"

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kMaxArtifactBytes = uint64_t{2} << 30;  // protobuf's own limit

std::string ArtifactPath(absl::string_view directory, absl::string_view name) {
  return absl::StrCat(directory, "/", name, ".pb");
}

}  // namespace

absl::StatusOr<std::string> LoadArtifact(const Storage& storage, absl::string_view directory, absl::string_view name,
                                         const ArtifactName& name_of) {
  const std::string path = ArtifactPath(directory, name);
  LS_ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile(storage, path, kMaxArtifactBytes));
  const absl::StatusOr<std::string> actual = name_of(bytes);
  if (actual.ok() && *actual == name) return bytes;
  return absl::DataLossError(absl::StrCat(storage.Describe(path), " was damaged: its content has the hash ",
                                          actual.ok() ? *actual : "of nothing readable", ", its name says ", name));
}

absl::StatusOr<bool> StoreArtifact(TermHold& hold, absl::string_view directory, absl::string_view name,
                                   absl::string_view bytes, const ArtifactName& name_of) {
  LS_ASSIGN_OR_RETURN(const std::string expected, name_of(bytes));
  if (expected != name) {
    return absl::InvalidArgumentError(absl::StrCat("bytes with the hash ", expected, " are not stored as ", name));
  }
  Storage& storage = hold.storage();
  const std::string path = ArtifactPath(directory, name);
  const absl::Status there = LoadArtifact(storage, directory, name, name_of).status();
  if (there.ok()) {
    LS_RETURN_IF_ERROR(storage.SyncDirectory(directory));
    return false;
  }
  if (absl::IsDataLoss(there)) {
    LS_RETURN_IF_ERROR(hold.SetAside(path, "bad").status());
  } else if (!absl::IsNotFound(there)) {
    return there;
  }
  const absl::Status stored = hold.StoreNew(path, bytes);
  if (stored.ok()) return true;
  if (absl::IsAlreadyExists(stored)) return false;  // an equal one was stored meanwhile
  return stored;
}

}  // namespace lockstep::chief
