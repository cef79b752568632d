#include "common/storage/local/posix_error.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// For an errno that a user can mend: what to do.
absl::string_view Remedy(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "; give this user write access or choose another --dir";
    case EROFS:
      return "; the file system is mounted read-only: make it writable or choose another --dir";
    case EMFILE:
    case ENFILE:
      return "; raise the limit of open files (ulimit -n)";
    case EIO:
      return "; the device reports an error, see the kernel's log";
    case ENAMETOOLONG:
      return "; choose a shorter --dir";
    default:
      return "";
  }
}

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
      return absl::StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
      return absl::StatusCode::kResourceExhausted;
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
      return absl::StatusCode::kFailedPrecondition;
    case ENAMETOOLONG:
    case EINVAL:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

absl::Status PosixError(int error, absl::string_view what, absl::string_view path) {
  return absl::Status(CodeOf(error), absl::StrCat("cannot ", what, " ", path, ": ",
                                                  std::generic_category().message(error), Remedy(error)));
}

absl::Status PosixWriteError(int error, const std::string& path, uint64_t needed) {
  if (error != ENOSPC && error != EDQUOT && error != EFBIG) return PosixError(error, "write", path);
  std::string available = "unknown";
  struct statvfs info;
  if (statvfs(path.c_str(), &info) == 0) {
    available = absl::StrCat(static_cast<uint64_t>(info.f_bavail) * info.f_frsize);
  }
  const char* cause = error == ENOSPC   ? "the disk is full"
                      : error == EDQUOT ? "this user's quota is used up"
                                        : "the file size limit is reached";
  return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path, ": ", cause, "; needed ", needed,
                                                   " bytes, available ", available,
                                                   " bytes. Free some space or choose another --dir"));
}

}  // namespace lockstep
