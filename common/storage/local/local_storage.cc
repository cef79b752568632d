#include "common/storage/local/local_storage.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/liveness/activity.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/storage/local/directory_names.h"
#include "common/storage/local/local_files.h"
#include "common/storage/local/posix_error.h"

namespace lockstep {
namespace {

// Makes `path` and its missing parents, syncing the directory that each appears in. Also that of one that is there:
// whoever made it may have ended before that.
absl::Status MakeDirectories(const std::string& path) {
  const std::string above = std::filesystem::path(path).parent_path().string();
  const std::string parent = above.empty() ? std::string(1, '.') : above;
  struct stat info;
  if (stat(path.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " is a file; expected a directory. Choose another --dir"));
    }
    const absl::Status synced = SyncLocalDirectory(parent);
    return absl::IsPermissionDenied(synced) ? absl::OkStatus() : synced;  // of another user, who made it
  }
  if (errno != ENOENT) return PosixError(errno, "use", path);
  if (parent != path) LS_RETURN_IF_ERROR(MakeDirectories(parent));
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) return PosixError(errno, "create directory", path);
  return SyncLocalDirectory(parent);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalStorage>> LocalStorage::Create(absl::string_view root) {
  const std::string clean = std::filesystem::path(std::string(root)).lexically_normal().string();
  LS_RETURN_IF_ERROR(MakeDirectories(clean));
  if (access(clean.c_str(), R_OK | W_OK | X_OK) != 0) return PosixError(errno, "write to directory", clean);
  return Open(clean);
}

absl::StatusOr<std::unique_ptr<LocalStorage>> LocalStorage::Open(absl::string_view root) {
  std::string clean = std::filesystem::path(std::string(root)).lexically_normal().string();
  while (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  struct stat info;
  if (stat(clean.c_str(), &info) != 0) return PosixError(errno, "open directory", clean);
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(clean, " is a file; expected a directory"));
  }
  return std::unique_ptr<LocalStorage>(new LocalStorage(clean));
}

std::string LocalStorage::Describe(absl::string_view path) const {
  return path.empty() ? root_ : absl::StrCat(root_, "/", path);
}

absl::Status LocalStorage::CreateDirectoryExclusive(absl::string_view path) {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  const std::string full = Describe(path);
  const NowDoing making("making ", NoteTail(full));
  if (mkdir(full.c_str(), 0777) != 0) return PosixError(errno, "create directory", full);
  return SyncLocalDirectory(Describe(ParentPath(path)));
}

absl::Status LocalStorage::CreateDirectories(absl::string_view path) {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  return MakeDirectories(Describe(path));
}

absl::StatusOr<std::unique_ptr<WritableFile>> LocalStorage::CreateFile(absl::string_view path, Access access) {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  return CreateLocalFile(Describe(path), access);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> LocalStorage::OpenFile(absl::string_view path) const {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  return OpenLocalFile(Describe(path));
}

absl::StatusOr<std::vector<DirectoryEntry>> LocalStorage::List(absl::string_view path) const {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  const std::string full = Describe(path);
  const NowDoing listing("listing ", NoteTail(full));
  LS_ASSIGN_OR_RETURN(std::vector<std::string> names, ReadDirectoryNames(full));
  std::sort(names.begin(), names.end());
  std::vector<DirectoryEntry> entries;
  for (std::string& name : names) {
    const std::string place = absl::StrCat(full, "/", name);
    DirectoryEntry entry;
    entry.name = std::move(name);
    struct stat info;
    if (lstat(place.c_str(), &info) != 0) {
      if (errno == ENOENT) continue;  // went away meanwhile
      return PosixError(errno, "read the size of", place);
    }
    entry.is_directory = S_ISDIR(info.st_mode);
    if (!entry.is_directory) entry.size = static_cast<uint64_t>(info.st_size);
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<bool> LocalStorage::Exists(absl::string_view path) const {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  struct stat info;
  if (lstat(Describe(path).c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return PosixError(errno, "look for", Describe(path));
}

absl::Status LocalStorage::SyncParents(absl::string_view from, absl::string_view to) {
  // The new place first: a crash in between may leave the name in both, never in neither.
  LS_RETURN_IF_ERROR(SyncLocalDirectory(Describe(ParentPath(to))));
  if (ParentPath(from) == ParentPath(to)) return absl::OkStatus();
  return SyncLocalDirectory(Describe(ParentPath(from)));
}

absl::Status LocalStorage::Rename(absl::string_view from, absl::string_view to) {
  LS_RETURN_IF_ERROR(CheckStoragePath(from));
  LS_RETURN_IF_ERROR(CheckStoragePath(to));
  const std::string source = Describe(from);
  const std::string target = Describe(to);
  const NowDoing renaming("renaming to ", NoteTail(target));
  if (renameat2(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) {
      return PosixError(errno, "rename", absl::StrCat(source, " to ", target));
    }
    // The file system lacks the flag: rename(2) still refuses a directory that is not empty.
    struct stat info;
    if (lstat(target.c_str(), &info) == 0) return PosixError(EEXIST, "rename", absl::StrCat(source, " to ", target));
    if (rename(source.c_str(), target.c_str()) != 0) {
      return PosixError(errno, "rename", absl::StrCat(source, " to ", target));
    }
  }
  return SyncParents(from, to);
}

absl::Status LocalStorage::Replace(absl::string_view from, absl::string_view to) {
  LS_RETURN_IF_ERROR(CheckStoragePath(from));
  LS_RETURN_IF_ERROR(CheckStoragePath(to));
  const std::string target = Describe(to);
  const NowDoing renaming("renaming to ", NoteTail(target));
  if (rename(Describe(from).c_str(), Describe(to).c_str()) != 0) {
    return PosixError(errno, "rename", absl::StrCat(Describe(from), " to ", Describe(to)));
  }
  return SyncParents(from, to);
}

absl::Status LocalStorage::Link(absl::string_view from, absl::string_view to) {
  LS_RETURN_IF_ERROR(CheckStoragePath(from));
  LS_RETURN_IF_ERROR(CheckStoragePath(to));
  const std::string source = Describe(from);
  const std::string target = Describe(to);
  const NowDoing linking("linking ", NoteTail(target));
  if (link(source.c_str(), target.c_str()) == 0) return absl::OkStatus();
  const std::string what = absl::StrCat(source, " to ", target);
  // No second names here, or no more of this file, or not of a file of another user.
  const bool cannot = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK || errno == EXDEV;
  const absl::Status error = PosixError(errno, "link", what);
  return cannot ? absl::UnimplementedError(error.message()) : error;
}

absl::Status LocalStorage::RemoveTree(absl::string_view path) {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  if (path.empty()) return absl::InvalidArgumentError("the root of a storage is not removed");
  std::error_code error;
  const std::string full = Describe(path);
  const NowDoing removing("removing ", NoteTail(full));
  std::filesystem::remove_all(full, error);
  if (error && error.value() != ENOENT && error.value() != ENOTDIR) {
    return PosixError(error.value(), "remove", Describe(path));
  }
  return absl::OkStatus();
}

absl::Status LocalStorage::SyncDirectory(absl::string_view path) {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  return SyncLocalDirectory(Describe(path));
}

absl::StatusOr<uint64_t> LocalStorage::FreeBytes() const {
  struct statvfs info;
  if (statvfs(root_.c_str(), &info) != 0) return PosixError(errno, "read the free space of", root_);
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

absl::StatusOr<std::unique_ptr<StorageLock>> LocalStorage::Lock(absl::string_view path, absl::string_view owner) {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  return LockLocalFile(Describe(path), owner);
}

}  // namespace lockstep
