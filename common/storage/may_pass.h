// Classifies errors of a storage by whether they may pass: by themselves, or because somebody frees space, mounts the
// file system again or restores permissions. A caller with data that it must not lose retries after such an error.
// Other errors (damaged bytes, a path that is no directory, a bug of this program) are permanent.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_STORAGE_MAY_PASS_H_
#define LOCKSTEP_COMMON_STORAGE_MAY_PASS_H_

#include "absl/status/status.h"

namespace lockstep {

// The file system is full, read-only, unreachable or reports errors (ENOSPC, EDQUOT, EFBIG, EROFS, EIO, ESTALE, ...):
// errors that a correctly configured job can meet.
inline bool IsOutage(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
}

// An outage, or permissions that were withdrawn (EACCES, EPERM), or a directory that disappeared (ENOENT, an unmount).
inline bool MayPass(const absl::Status& status) {
  return IsOutage(status) || absl::IsPermissionDenied(status) || absl::IsNotFound(status);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_MAY_PASS_H_
