// Converts errno to absl::Status, with the place and a remedy.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_STORAGE_LOCAL_POSIX_ERROR_H_
#define LOCKSTEP_COMMON_STORAGE_LOCAL_POSIX_ERROR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// `error` is an errno value, `what` the verb of the message ("write"), `path` the path as the user knows it.
absl::Status PosixError(int error, absl::string_view what, absl::string_view path);

// As PosixError; when the disk (or a quota, or the file size limit) is full, names `needed` and the available bytes.
absl::Status PosixWriteError(int error, const std::string& path, uint64_t needed);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_LOCAL_POSIX_ERROR_H_
