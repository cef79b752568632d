// The files of a job in an object store: a file is an object, a directory is the beginning of names. What only a file
// system has is refused, or does nothing:
//   * nothing is renamed; Replace stores the bytes again under the other name
//   * directories are there as soon as something lies in them, and list as empty before. Creating one does nothing, so
//     that among several callers all succeed: terms are claimed by the commit log (object_slots.h)
//   * there are no locks, and no bound on the bytes that is known
//
// A file is kept in memory up to a part, and is one Put then, at every Sync again. A longer one is an upload of parts:
// it appears whole at its first Sync or Close, and takes no more bytes after that. A file that is dropped before shows
// nothing, and its upload is given up.
//
// Files that are read are fetched in blocks that grow while they are read in order. A small one is fetched whole when
// it is opened: it may be replaced at any time, and is never read half old and half new.
//
// Codes: as Storage, and Unimplemented where a bucket lacks something.
// Threading: thread-safe, a file that is written is thread-compatible; every call blocks on the store.
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
    uint64_t part_bytes = uint64_t{8} << 20;   // of an upload; a file that is written holds as much memory
    int senders = 0;                           // threads that send parts, each with a part; 0: writers send their own
    uint64_t whole_bytes = uint64_t{4} << 20;  // files up to here are fetched when they are opened
    uint64_t first_block = uint64_t{64} << 10;
    uint64_t longest_block = uint64_t{8} << 20;  // a file that is read holds as much memory
  };

  // `store` is not owned. REQUIRES: limits.part_bytes >= kMinPartBytes, for any store but one in memory.
  BucketStorage(ObjectStore* store, Limits limits) : store_(*store), limits_(limits) {
    if (limits_.senders > 0) senders_ = std::make_unique<PartSenders>(limits_.senders);
  }
  explicit BucketStorage(ObjectStore* store) : BucketStorage(store, Limits()) {}

  ObjectStore& objects() const { return store_; }

  // Stores a whole file, in the place of what is there.
  absl::Status PutFile(absl::string_view path, absl::string_view content);
  // Stores a whole file where none is. AlreadyExists also when it is of this very call, whose first answer was lost.
  absl::Status PutNewFile(absl::string_view path, absl::string_view content);

  absl::Status CreateDirectoryExclusive(absl::string_view path) override;
  absl::Status CreateDirectories(absl::string_view path) override;
  // AlreadyExists is told by a look: of two that create one file at once, the one that ends last stays.
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
  // As many as can be said.
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
