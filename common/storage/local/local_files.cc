#include "common/storage/local/local_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/liveness/activity.h"
#include "common/status/status_macros.h"
#include "common/storage/local/posix_error.h"

namespace lockstep {
namespace {

constexpr uint64_t kFlushEvery = 8u << 20;

// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int OpenRetrying(const std::string& path, int flags, mode_t mode) {
  const NowDoing opening("opening ", NoteTail(path));
  int fd;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

absl::Status WriteAll(int fd, const std::string& path, absl::string_view bytes) {
  const NowDoing writing("writing ", NoteTail(path));
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return PosixWriteError(errno, path, bytes.size());
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status SyncDescriptor(int fd, const std::string& path, uint64_t written) {
  const NowDoing syncing("fsync of ", NoteTail(path));
  if (fsync(fd) == 0) return absl::OkStatus();
  // Delayed allocation reports a full disk here.
  return errno == ENOSPC || errno == EDQUOT ? PosixWriteError(errno, path, written) : PosixError(errno, "sync", path);
}

// The inode's number, but for file systems that make numbers up as they go.
uint64_t IdentityOf(int fd, const struct stat& info) {
  constexpr long kFuse = 0x65735546, kCifs = 0xFF534D42, kSmb2 = 0xFE534D42, k9p = 0x01021997;
  struct statfs place;
  if (fstatfs(fd, &place) != 0) return 0;
  const auto type = static_cast<uint32_t>(place.f_type);
  for (const long made_up : {kFuse, kCifs, kSmb2, k9p}) {
    if (type == static_cast<uint32_t>(made_up)) return 0;
  }
  return info.st_ino;
}

class LocalWritableFile final : public WritableFile {
 public:
  LocalWritableFile(Descriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  absl::Status Append(absl::string_view bytes) override {
    LS_RETURN_IF_ERROR(CheckOpen());
    written_ += bytes.size();
    LS_RETURN_IF_ERROR(WriteAll(fd_.get(), path_, bytes));
    if (written_ - flushing_ < kFlushEvery) return absl::OkStatus();
    // A hint: the disk works while more is coming, so that Sync has little left to wait for.
    sync_file_range(fd_.get(), static_cast<off_t>(flushing_), static_cast<off_t>(written_ - flushing_),
                    SYNC_FILE_RANGE_WRITE);
    flushing_ = written_;
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    LS_RETURN_IF_ERROR(CheckOpen());
    return SyncDescriptor(fd_.get(), path_, written_);
  }
  absl::Status Close() override {
    LS_RETURN_IF_ERROR(CheckOpen());
    const NowDoing closing("closing ", NoteTail(path_));
    if (close(fd_.Release()) == 0) return absl::OkStatus();
    return PosixWriteError(errno, path_, written_);
  }

 private:
  absl::Status CheckOpen() const {
    if (fd_.get() >= 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
  }

  Descriptor fd_;
  const std::string path_;
  uint64_t written_ = 0;
  uint64_t flushing_ = 0;  // of these the kernel was asked to write back
};

class LocalReadableFile final : public ReadableFile {
 public:
  LocalReadableFile(Descriptor fd, std::string path, const struct stat& info)
      : fd_(std::move(fd)), path_(std::move(path)), size_(static_cast<uint64_t>(info.st_size)) {
    facts_.identity = IdentityOf(fd_.get(), info);
    facts_.owner = info.st_uid;
    facts_.is_private = (info.st_mode & 0077) == 0;
  }

  uint64_t size() const override { return size_; }
  FileFacts facts() const override { return facts_; }

  absl::Status ReadAt(uint64_t offset, absl::Span<char> out) const override {
    const NowDoing reading("reading ", NoteTail(path_));
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t n = pread(fd_.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return PosixError(errno, "read", path_);
      if (n == 0) {
        return absl::DataLossError(absl::StrCat(path_, " ends at byte ", offset + done, "; expected ", out.size(),
                                                " bytes from byte ", offset, ". It was truncated"));
      }
      done += static_cast<size_t>(n);
    }
    return absl::OkStatus();
  }

 private:
  const Descriptor fd_;
  const std::string path_;
  const uint64_t size_;
  FileFacts facts_;
};

class LocalLock final : public StorageLock {
 public:
  explicit LocalLock(Descriptor fd) : fd_(std::move(fd)) {}

 private:
  const Descriptor fd_;  // closing it releases the lock
};

}  // namespace

absl::StatusOr<std::unique_ptr<WritableFile>> CreateLocalFile(const std::string& path, Access access) {
  const mode_t mode = access == Access::kPrivate ? 0600 : 0666;
  Descriptor fd(OpenRetrying(path, O_WRONLY | O_CREAT | O_EXCL, mode));
  if (fd.get() < 0) {
    return errno == ENOSPC || errno == EDQUOT ? PosixWriteError(errno, path, 1) : PosixError(errno, "create", path);
  }
  return std::make_unique<LocalWritableFile>(std::move(fd), path);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> OpenLocalFile(const std::string& path) {
  Descriptor fd(OpenRetrying(path, O_RDONLY, 0));
  if (fd.get() < 0) return PosixError(errno, "open", path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return PosixError(errno, "read the size of", path);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a file"));
  }
  return std::make_unique<LocalReadableFile>(std::move(fd), path, info);
}

std::string SymbolicLinkText(absl::string_view path) {
  return absl::StrCat(path,
                      " is a symbolic link, and is not written to. Remove it, and see who may write its directory");
}

absl::StatusOr<std::unique_ptr<StorageLock>> LockLocalFile(const std::string& path, absl::string_view owner) {
  // It is written to: another user who may write the directory must not choose what.
  Descriptor fd(OpenRetrying(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0666));
  if (fd.get() < 0 && errno == ELOOP) {
    return absl::InvalidArgumentError(SymbolicLinkText(path));
  }
  if (fd.get() < 0) return PosixError(errno, "open", path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return PosixError(errno, "look at", path);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " is not a file. Remove it"));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == ENOLCK || errno == EOPNOTSUPP) {
      return absl::UnimplementedError(absl::StrCat("the file system of ", path, " has no locks"));
    }
    if (errno != EWOULDBLOCK) return PosixError(errno, "lock", path);
    char holder[256];
    const ssize_t n = pread(fd.get(), holder, sizeof holder, 0);
    return absl::FailedPreconditionError(absl::StrCat(
        path, " is held by ", n > 0 ? absl::string_view(holder, static_cast<size_t>(n)) : "another process"));
  }
  if (ftruncate(fd.get(), 0) != 0) return PosixError(errno, "write", path);
  LS_RETURN_IF_ERROR(WriteAll(fd.get(), path, owner));
  return std::make_unique<LocalLock>(std::move(fd));
}

absl::Status SyncLocalDirectory(const std::string& path) {
  Descriptor fd(OpenRetrying(path, O_RDONLY | O_DIRECTORY, 0));
  if (fd.get() < 0) return PosixError(errno, "open", path);
  return SyncDescriptor(fd.get(), path, 0);
}

}  // namespace lockstep
