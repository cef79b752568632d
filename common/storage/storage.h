// Storage for a job's files. Everything durable (checkpoints, metagraphs, terms, stats, event logs) is reached through
// this interface, so that nothing else knows whether it is a local disk, a network mount or a simulated one.
//
// Paths are relative to the storage's root, '/'-separated, without "." or ".." parts; "" is the root.
//
// Invariants
//   * After a call returned OK, what it makes durable survives a loss of power: the bytes of a file after Sync, the
//     names in a directory after SyncDirectory, Rename, Replace and CreateDirectory*.
//   * A file is written once, by appending, and never changed under its name: new content comes by Replace.
//   * Rename and Replace are atomic: readers see the old state or the new one, also after a crash.
//
// Codes: NotFound, AlreadyExists, ResourceExhausted (disk full; the message has needed and available bytes),
// PermissionDenied, DataLoss (a read beyond the end), Unavailable (an I/O error), InvalidArgument (a bad path),
// FailedPrecondition (a file where a directory is needed, or the reverse). Messages name the place as a user sees it.
//
// Threading: every call blocks. LocalStorage is thread-safe, MemoryStorage thread-compatible.
#ifndef LOCKSTEP_COMMON_STORAGE_STORAGE_H_
#define LOCKSTEP_COMMON_STORAGE_STORAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lockstep {

// A new file being written. Destroying it without Close leaves whatever was appended, synced or not.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Appends all of `bytes` or fails; after a failure the file's content is undefined and the file is to be removed.
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Makes everything appended so far durable (not the file's name: see SyncDirectory).
  virtual absl::Status Sync() = 0;
  // Closes without syncing. Later calls fail with FailedPrecondition.
  virtual absl::Status Close() = 0;
};

// Metadata of an open file.
struct FileFacts {
  uint64_t identity = 0;   // differs between a file and its copies, on all machines that share the storage; 0: unknown
  uint32_t owner = 0;      // user id, as the storage reports it
  bool is_private = true;  // only the owner may read or write it
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Size when it was opened.
  virtual uint64_t size() const = 0;
  virtual FileFacts facts() const = 0;
  // Fills `out` from `offset`, or fails: DataLoss when the file ends before.
  virtual absl::Status ReadAt(uint64_t offset, absl::Span<char> out) const = 0;
};

// Held until destroyed, or until the process ends in whatever way.
class StorageLock {
 public:
  virtual ~StorageLock() = default;
};

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  uint64_t size = 0;  // of a file

  friend bool operator==(const DirectoryEntry&, const DirectoryEntry&) = default;
};

enum class Access {
  kShared,   // the process's default permissions
  kPrivate,  // readable and writable by the owner only (0600)
};

class Storage {
 public:
  virtual ~Storage() = default;

  // Creates one directory, durably. AlreadyExists when anything has that name, so that among several callers exactly
  // one succeeds; NotFound when the parent is missing.
  virtual absl::Status CreateDirectoryExclusive(absl::string_view path) = 0;
  // Creates a directory and its missing parents, durably. OK when it is there.
  virtual absl::Status CreateDirectories(absl::string_view path) = 0;

  // Starts a new file. AlreadyExists when anything has that name; NotFound when the parent is missing.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(absl::string_view path, Access access) = 0;
  // Opens a file for reading. NotFound when it is missing.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(absl::string_view path) const = 0;

  // The entries of a directory, sorted by name. NotFound when it is missing.
  virtual absl::StatusOr<std::vector<DirectoryEntry>> List(absl::string_view path) const = 0;
  virtual absl::StatusOr<bool> Exists(absl::string_view path) const = 0;

  // Gives a file or directory a new name, durably (both parents are synced). AlreadyExists when `to` is taken, also by
  // an empty directory. After an error other than AlreadyExists and NotFound the move may or may not have happened.
  virtual absl::Status Rename(absl::string_view from, absl::string_view to) = 0;
  // Puts the file `from` in the place of the file `to`, which may be there or not, durably.
  virtual absl::Status Replace(absl::string_view from, absl::string_view to) = 0;

  // Gives the bytes of the file `from` a second name `to` without reading them: as a hard link, or as a copy that the
  // storage itself makes. The name is durable after SyncDirectory; removing one name leaves the other. NotFound,
  // AlreadyExists. Unimplemented: the storage cannot do it with this file.
  virtual absl::Status Link(absl::string_view from, absl::string_view to) = 0;

  // Removes a file, or a directory with everything in it; not atomic. OK when nothing has that name.
  virtual absl::Status RemoveTree(absl::string_view path) = 0;

  // Makes the names in a directory durable.
  virtual absl::Status SyncDirectory(absl::string_view path) = 0;

  // Bytes that can still be written.
  virtual absl::StatusOr<uint64_t> FreeBytes() const = 0;

  // Takes the lock file at `path` for this process, creating it, and stores `owner` in it. FailedPrecondition when
  // another process holds it; the message includes the owner that it stored. Unimplemented when the storage has no
  // locks.
  virtual absl::StatusOr<std::unique_ptr<StorageLock>> Lock(absl::string_view path, absl::string_view owner) = 0;

  // The path as a user would find it, for messages.
  virtual std::string Describe(absl::string_view path) const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_STORAGE_H_
