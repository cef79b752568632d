// Storage on an object store: a file is an object, a directory is a prefix of keys. Operations that only a file system
// has are refused or do nothing:
//   * Rename is refused; Replace stores the bytes again under the other name
//   * a directory exists once there is something in it, and lists as empty before. Creating one does nothing, so all of
//     several callers succeed: terms are claimed by the commit log instead (object_slots.h)
//   * there are no locks, and no known limit on the bytes
//
// A file of at most one part is kept in memory and stored by one Put, again at every Sync. A longer file is a multipart
// upload: it appears whole at its first Sync or Close, and cannot grow after that. A file that is destroyed before does
// not appear, and its upload is aborted.
//
// Files are read in blocks, which grow during sequential reading. A small file is fetched whole when it is opened: it
// may be replaced at any time, and must not be read half old and half new.
//
// Codes: as Storage, and Unimplemented for operations that a bucket lacks.
// Threading: thread-safe; a file that is being written is thread-compatible. Every call blocks on the store.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_BUCKET_STORAGE_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_BUCKET_STORAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/object_store/object_store.h"
#include "common/object_store/part_senders.h"
#include "common/storage/storage.h"

namespace lockstep {

class BucketStorage final : public Storage {
 public:
  struct Limits {
    uint64_t part_bytes = uint64_t{8} << 20;   // of an upload; a file that is being written holds as much memory
    int senders = 0;                           // threads that send parts, each holding one; 0: writers send their own
    uint64_t whole_bytes = uint64_t{4} << 20;  // files up to here are fetched when they are opened
    uint64_t first_block = uint64_t{64} << 10;
    uint64_t longest_block = uint64_t{8} << 20;  // a file that is being read holds as much memory
  };

  // `store` is not owned. REQUIRES: limits.part_bytes >= kMinPartBytes, for any store but one in memory.
  BucketStorage(ObjectStore* store, Limits limits) : store_(*store), limits_(limits) {
    if (limits_.senders > 0) senders_ = std::make_unique<PartSenders>(limits_.senders);
  }
  explicit BucketStorage(ObjectStore* store) : BucketStorage(store, Limits()) {}

  ObjectStore& objects() const { return store_; }

  // Stores a whole file, replacing an existing one.
  absl::Status PutFile(absl::string_view path, absl::string_view content);
  // Stores a whole file that must not exist. AlreadyExists also when this call itself stored it and the first answer
  // was lost.
  absl::Status PutNewFile(absl::string_view path, absl::string_view content);

  absl::Status CreateDirectoryExclusive(absl::string_view path) override;
  absl::Status CreateDirectories(absl::string_view path) override;
  // The check for AlreadyExists is not atomic: of two concurrent creations of one file, the one that ends last wins.
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(absl::string_view path, Access access) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(absl::string_view path) const override;
  absl::StatusOr<std::vector<DirectoryEntry>> List(absl::string_view path) const override;
  absl::StatusOr<bool> Exists(absl::string_view path) const override;
  absl::Status Rename(absl::string_view from, absl::string_view to) override;
  // For small files: `from` is read whole.
  absl::Status Replace(absl::string_view from, absl::string_view to) override;
  // A copy that the server makes.
  absl::Status Link(absl::string_view from, absl::string_view to) override;
  absl::Status RemoveTree(absl::string_view path) override;
  absl::Status SyncDirectory(absl::string_view path) override;
  // The largest number: the free space is not known.
  absl::StatusOr<uint64_t> FreeBytes() const override;
  absl::StatusOr<std::unique_ptr<StorageLock>> Lock(absl::string_view path, absl::string_view owner) override;
  std::string Describe(absl::string_view path) const override { return store_.Describe(path); }

 private:
  ObjectStore& store_;
  const Limits limits_;
  std::unique_ptr<PartSenders> senders_;  // null: none
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_BUCKET_STORAGE_H_
