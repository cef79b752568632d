// Storage in a directory of a POSIX file system. Everything that the interface promises to be durable is fsynced.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_STORAGE_LOCAL_LOCAL_STORAGE_H_
#define LOCKSTEP_COMMON_STORAGE_LOCAL_LOCAL_STORAGE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/storage/storage.h"

namespace lockstep {

class LocalStorage final : public Storage {
 public:
  // Uses `root`, which is created with its parents when it is missing. PermissionDenied; FailedPrecondition when a file
  // is there.
  static absl::StatusOr<std::unique_ptr<LocalStorage>> Create(absl::string_view root);
  // Uses `root` for reading; NotFound when it is missing.
  static absl::StatusOr<std::unique_ptr<LocalStorage>> Open(absl::string_view root);

  absl::Status CreateDirectoryExclusive(absl::string_view path) override;
  absl::Status CreateDirectories(absl::string_view path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(absl::string_view path, Access access) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(absl::string_view path) const override;
  absl::StatusOr<std::vector<DirectoryEntry>> List(absl::string_view path) const override;
  absl::StatusOr<bool> Exists(absl::string_view path) const override;
  absl::Status Rename(absl::string_view from, absl::string_view to) override;
  absl::Status Replace(absl::string_view from, absl::string_view to) override;
  absl::Status Link(absl::string_view from, absl::string_view to) override;
  absl::Status RemoveTree(absl::string_view path) override;
  absl::Status SyncDirectory(absl::string_view path) override;
  absl::StatusOr<uint64_t> FreeBytes() const override;
  absl::StatusOr<std::unique_ptr<StorageLock>> Lock(absl::string_view path, absl::string_view owner) override;
  std::string Describe(absl::string_view path) const override;

 private:
  explicit LocalStorage(std::string root) : root_(std::move(root)) {}

  absl::Status SyncParents(absl::string_view from, absl::string_view to);

  const std::string root_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_LOCAL_LOCAL_STORAGE_H_
