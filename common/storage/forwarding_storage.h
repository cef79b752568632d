// A storage that forwards every call to another one; tests derive from it to change single calls.
//
// Threading: thread-safe if the storage below is.
#ifndef LOCKSTEP_COMMON_STORAGE_FORWARDING_STORAGE_H_
#define LOCKSTEP_COMMON_STORAGE_FORWARDING_STORAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/storage/storage.h"

namespace lockstep {

class ForwardingStorage : public Storage {
 public:
  // `below` is not owned.
  explicit ForwardingStorage(Storage& below) : below_(below) {}

  absl::Status CreateDirectoryExclusive(absl::string_view path) override {
    return below_.CreateDirectoryExclusive(path);
  }
  absl::Status CreateDirectories(absl::string_view path) override { return below_.CreateDirectories(path); }
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(absl::string_view path, Access access) override {
    return below_.CreateFile(path, access);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(absl::string_view path) const override {
    return below_.OpenFile(path);
  }
  absl::StatusOr<std::vector<DirectoryEntry>> List(absl::string_view path) const override { return below_.List(path); }
  absl::StatusOr<bool> Exists(absl::string_view path) const override { return below_.Exists(path); }
  absl::Status Rename(absl::string_view from, absl::string_view to) override { return below_.Rename(from, to); }
  absl::Status Replace(absl::string_view from, absl::string_view to) override { return below_.Replace(from, to); }
  absl::Status Link(absl::string_view from, absl::string_view to) override { return below_.Link(from, to); }
  absl::Status RemoveTree(absl::string_view path) override { return below_.RemoveTree(path); }
  absl::Status SyncDirectory(absl::string_view path) override { return below_.SyncDirectory(path); }
  absl::StatusOr<uint64_t> FreeBytes() const override { return below_.FreeBytes(); }
  absl::StatusOr<std::unique_ptr<StorageLock>> Lock(absl::string_view path, absl::string_view owner) override {
    return below_.Lock(path, owner);
  }
  std::string Describe(absl::string_view path) const override { return below_.Describe(path); }

 private:
  Storage& below_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_FORWARDING_STORAGE_H_
