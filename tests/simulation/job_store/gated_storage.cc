#include "tests/simulation/job_store/gated_storage.h"

#include <utility>

#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::simulation {
namespace {

constexpr bool kReads = false, kWrites = true;

class GatedFile final : public WritableFile {
 public:
  GatedFile(std::unique_ptr<WritableFile> below, OperationGate& gate) : below_(std::move(below)), gate_(gate) {}

  absl::Status Append(absl::string_view bytes) override {
    const absl::Status passed = gate_.Before(kWrites);
    if (passed.ok()) return below_->Append(bytes);
    // Of what fails, and of what a dead process was writing, half is there.
    if (!was_dead_) below_->Append(bytes.substr(0, bytes.size() / 2)).IgnoreError();
    was_dead_ = gate_.dead();
    return passed;
  }
  absl::Status Sync() override {
    LS_RETURN_IF_ERROR(gate_.Before(kWrites));
    return below_->Sync();
  }
  absl::Status Close() override { return below_->Close(); }

 private:
  std::unique_ptr<WritableFile> below_;
  OperationGate& gate_;
  bool was_dead_ = false;
};

}  // namespace

absl::Status GatedStorage::CreateDirectoryExclusive(absl::string_view path) {
  LS_RETURN_IF_ERROR(gate_.Before(kWrites));
  return ForwardingStorage::CreateDirectoryExclusive(path);
}

absl::Status GatedStorage::CreateDirectories(absl::string_view path) {
  LS_RETURN_IF_ERROR(gate_.Before(kWrites));
  return ForwardingStorage::CreateDirectories(path);
}

absl::StatusOr<std::unique_ptr<WritableFile>> GatedStorage::CreateFile(absl::string_view path, Access access) {
  LS_RETURN_IF_ERROR(gate_.Before(kWrites));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, ForwardingStorage::CreateFile(path, access));
  return std::make_unique<GatedFile>(std::move(file), gate_);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> GatedStorage::OpenFile(absl::string_view path) const {
  LS_RETURN_IF_ERROR(gate_.Before(kReads));
  return ForwardingStorage::OpenFile(path);
}

absl::StatusOr<std::vector<DirectoryEntry>> GatedStorage::List(absl::string_view path) const {
  LS_RETURN_IF_ERROR(gate_.Before(kReads));
  return ForwardingStorage::List(path);
}

absl::StatusOr<bool> GatedStorage::Exists(absl::string_view path) const {
  LS_RETURN_IF_ERROR(gate_.Before(kReads));
  return ForwardingStorage::Exists(path);
}

absl::Status GatedStorage::Rename(absl::string_view from, absl::string_view to) {
  LS_RETURN_IF_ERROR(gate_.Before(kWrites));
  return ForwardingStorage::Rename(from, to);
}

absl::Status GatedStorage::Link(absl::string_view from, absl::string_view to) {
  LS_RETURN_IF_ERROR(gate_.Before(kWrites));
  return ForwardingStorage::Link(from, to);
}

absl::Status GatedStorage::Replace(absl::string_view from, absl::string_view to) {
  LS_RETURN_IF_ERROR(gate_.Before(kWrites));
  return ForwardingStorage::Replace(from, to);
}

// Entry by entry, as the storage below would: a process may die in between.
absl::Status GatedStorage::RemoveTree(absl::string_view path) {
  const auto entries = ForwardingStorage::List(path);
  if (entries.ok()) {
    for (const DirectoryEntry& entry : *entries) LS_RETURN_IF_ERROR(RemoveTree(JoinPath(path, entry.name)));
  }
  LS_RETURN_IF_ERROR(gate_.Before(kWrites));
  return ForwardingStorage::RemoveTree(path);
}

absl::Status GatedStorage::SyncDirectory(absl::string_view path) {
  LS_RETURN_IF_ERROR(gate_.Before(kWrites));
  return ForwardingStorage::SyncDirectory(path);
}

absl::StatusOr<std::unique_ptr<StorageLock>> GatedStorage::Lock(absl::string_view path, absl::string_view owner) {
  LS_RETURN_IF_ERROR(gate_.Before(kWrites));
  memory_.DropLocks();
  return ForwardingStorage::Lock(path, owner);
}

}  // namespace lockstep::simulation
