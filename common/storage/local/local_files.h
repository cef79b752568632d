// Open files of LocalStorage.
//
// Threading: a file belongs to one thread at a time; ReadAt is thread-safe.
#ifndef LOCKSTEP_COMMON_STORAGE_LOCAL_LOCAL_FILES_H_
#define LOCKSTEP_COMMON_STORAGE_LOCAL_LOCAL_FILES_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/storage/storage.h"

namespace lockstep {

// The message for refusing to write through a symbolic link at `path`: another user with write access to its directory
// could redirect the write.
std::string SymbolicLinkText(absl::string_view path);

// `path` is absolute, or relative to the working directory. Codes as Storage.
absl::StatusOr<std::unique_ptr<WritableFile>> CreateLocalFile(const std::string& path, Access access);
absl::StatusOr<std::unique_ptr<ReadableFile>> OpenLocalFile(const std::string& path);
absl::StatusOr<std::unique_ptr<StorageLock>> LockLocalFile(const std::string& path, absl::string_view owner);

// fsync of a directory.
absl::Status SyncLocalDirectory(const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_LOCAL_LOCAL_FILES_H_
