// Whole small files on a Storage: read, write durably, replace atomically; and the check of paths.
//
// Threading: thread-safe if the Storage is.
#ifndef LOCKSTEP_COMMON_STORAGE_FILES_H_
#define LOCKSTEP_COMMON_STORAGE_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/storage/storage.h"

namespace lockstep {

// OK when `path` is relative, without empty, "." or ".." parts, NUL or backslash; "" is allowed.
absl::Status CheckStoragePath(absl::string_view path);
// Joins with '/', leaving out empty parts.
std::string JoinPath(absl::string_view a, absl::string_view b);
// The part before the last '/', "" when there is none.
absl::string_view ParentPath(absl::string_view path);
// The part after the last '/'.
absl::string_view BaseName(absl::string_view path);

// Reads a whole file of a kind that never exceeds `limit_bytes`. DataLoss for a larger one, since it must be damaged
// and a retry cannot help.
absl::StatusOr<std::string> ReadWholeFile(const Storage& storage, absl::string_view path, uint64_t limit_bytes);

// Creates a new file with this content and syncs it; its name is durable after SyncDirectory of the parent.
absl::Status WriteNewFile(Storage& storage, absl::string_view path, absl::string_view content, Access access);

// Creates or replaces the file at `path` in one atomic, durable step: the content is written under the name `scratch`
// (a fresh name on the same storage; removed first when something is left there), synced, then moved over `path`.
absl::Status ReplaceFile(Storage& storage, absl::string_view scratch, absl::string_view path, absl::string_view content,
                         Access access);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_FILES_H_
