#include "chief/term/storage_term_registry.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr char kOwnerFile[] = "owner.json";
constexpr uint64_t kMaxOwnerBytes = 64 << 10;

}  // namespace

absl::StatusOr<int64_t> StorageTermRegistry::Newest() const {
  const absl::StatusOr<std::vector<DirectoryEntry>> entries = storage_.List(layout::kChief);
  if (absl::IsNotFound(entries.status())) return 0;
  LS_RETURN_IF_ERROR(entries.status());
  int64_t newest = 0;
  for (const DirectoryEntry& entry : *entries) {
    newest = std::max(newest, layout::ParseTermName(entry.name).value_or(0));
  }
  return newest;
}

absl::StatusOr<int64_t> StorageTermRegistry::Claim(TermOwner owner) {
  LS_RETURN_IF_ERROR(storage_.CreateDirectories(layout::kChief));
  while (true) {
    LS_ASSIGN_OR_RETURN(const int64_t newest, Newest());
    const int64_t term = newest + 1;
    const absl::Status created = storage_.CreateDirectoryExclusive(layout::TermPath(term));
    if (absl::IsAlreadyExists(created)) continue;  // somebody was faster: theirs is now the newest
    LS_RETURN_IF_ERROR(created);
    owner.set_term(term);
    LS_RETURN_IF_ERROR(
        WriteNewFile(storage_, JoinPath(layout::TermPath(term), kOwnerFile), ToJson(owner), Access::kShared));
    return term;
  }
}

// A change of one's own there, as a claim is one, makes every file system look again.
absl::Status StorageTermRegistry::Refresh() {
  const std::string change = absl::StrCat(layout::kChief, "/recheck-", getpid(), "-", ++looks_);
  LS_RETURN_IF_ERROR(storage_.CreateDirectoryExclusive(change));
  return storage_.RemoveTree(change);
}

absl::StatusOr<TermOwner> StorageTermRegistry::OwnerOf(int64_t term) const {
  const std::string path = JoinPath(layout::TermPath(term), kOwnerFile);
  LS_ASSIGN_OR_RETURN(const std::string json, ReadWholeFile(storage_, path, kMaxOwnerBytes));
  TermOwner owner;
  LS_RETURN_IF_ERROR(FromJson(json, storage_.Describe(path), &owner));
  return owner;
}

}  // namespace lockstep::chief
