// Lists a directory of a POSIX file system completely, or fails: a listing that ends early could hide the newest
// checkpoints.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_STORAGE_LOCAL_DIRECTORY_NAMES_H_
#define LOCKSTEP_COMMON_STORAGE_LOCAL_DIRECTORY_NAMES_H_

#include <dirent.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Collects the names that `next` returns, except "." and "..". `next` behaves like readdir(3): null at the end, and
// null with errno set after an error. `path` is for the message. Codes as PosixError.
absl::StatusOr<std::vector<std::string>> CollectNames(const std::function<const dirent*()>& next,
                                                      absl::string_view path);

// The names in the directory at `path`, unsorted. Codes as PosixError.
absl::StatusOr<std::vector<std::string>> ReadDirectoryNames(const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_LOCAL_DIRECTORY_NAMES_H_
