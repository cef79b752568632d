#include "common/commit_log/storage_slots.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/commit_log/slot_name.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep {
namespace {

constexpr char kRecord[] = "record.json";
constexpr char kLeftover[] = "tmp-";
}  // namespace

std::string StorageSlots::PathOf(uint64_t number) const { return JoinPath(folder_, SlotName(number)); }

std::string StorageSlots::FileOf(uint64_t number) const { return JoinPath(PathOf(number), kRecord); }

std::string StorageSlots::LeftoverPath(absl::string_view what) const {
  return JoinPath(folder_, absl::StrCat(kLeftover, what, "-", make_name_()));
}

absl::StatusOr<std::vector<uint64_t>> StorageSlots::Newest(size_t limit) {
  std::vector<uint64_t> numbers;
  const absl::StatusOr<std::vector<DirectoryEntry>> entries = storage_.List(folder_);
  if (absl::IsNotFound(entries.status())) return numbers;
  LS_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    if (const auto number = SlotOfName(entry.name); number.has_value()) numbers.push_back(*number);
    if (numbers.size() == limit) break;  // in the order of names, which is that of the numbers turned round
  }
  return numbers;
}

absl::StatusOr<std::string> StorageSlots::Get(uint64_t number) {
  const std::string path = PathOf(number);
  absl::StatusOr<std::string> bytes = ReadWholeFile(storage_, FileOf(number), kMaxBytes);
  if (!absl::IsNotFound(bytes.status())) return bytes;
  LS_ASSIGN_OR_RETURN(const bool filled, storage_.Exists(path));
  if (!filled) return bytes;
  return absl::DataLossError(absl::StrCat(storage_.Describe(path), " has no ", kRecord));
}

absl::Status StorageSlots::Create(uint64_t number, absl::string_view bytes) {
  // Later ones lie where the first one does: where that folder is gone, the storage is another one.
  if (number == 1) LS_RETURN_IF_ERROR(storage_.CreateDirectories(folder_));
  const std::string staged = LeftoverPath("new");
  LS_RETURN_IF_ERROR(storage_.CreateDirectoryExclusive(staged));
  LS_RETURN_IF_ERROR(WriteNewFile(storage_, JoinPath(staged, kRecord), bytes, Access::kShared));
  LS_RETURN_IF_ERROR(storage_.SyncDirectory(staged));
  const absl::Status renamed = storage_.Rename(staged, PathOf(number));
  // After another error it may have happened: what is left then is swept by whoever takes over.
  if (absl::IsAlreadyExists(renamed)) storage_.RemoveTree(staged).IgnoreError();
  return renamed;
}

absl::Status StorageSlots::Remove(uint64_t number) { return RemoveNameFirst(PathOf(number)); }

absl::Status StorageSlots::RemoveNameFirst(const std::string& path) {
  const std::string gone = LeftoverPath("old");
  const absl::Status renamed = storage_.Rename(path, gone);
  if (absl::IsNotFound(renamed)) return absl::OkStatus();
  LS_RETURN_IF_ERROR(renamed);
  return storage_.RemoveTree(gone);
}

absl::Status StorageSlots::SweepLeftovers() {
  const absl::StatusOr<std::vector<DirectoryEntry>> entries = storage_.List(folder_);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  LS_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    if (absl::StartsWith(entry.name, kLeftover)) {
      LS_RETURN_IF_ERROR(RemoveNameFirst(JoinPath(folder_, entry.name)));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep
