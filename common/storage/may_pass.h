// Which failures of a storage may pass: by themselves, or because somebody frees space, mounts the file system again or
// gives the right back. Whoever holds what it cannot lose tries again. The rest (bytes that are not what they should
// be, a path that is no directory, a mistake of this program) stays as it is, however often it is tried.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_STORAGE_MAY_PASS_H_
#define LOCKSTEP_COMMON_STORAGE_MAY_PASS_H_

#include "absl/status/status.h"

namespace lockstep {

// The file system is full, read-only, unreachable or reports errors (ENOSPC, EDQUOT, EFBIG, EROFS, EIO, ESTALE, ...):
// what a healthy job meets without anybody having changed its settings.
inline bool IsOutage(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
}

// An outage, or else a right that was taken (EACCES, EPERM) or a directory that went away (ENOENT, an unmount).
inline bool MayPass(const absl::Status& status) {
  return IsOutage(status) || absl::IsPermissionDenied(status) || absl::IsNotFound(status);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_MAY_PASS_H_
