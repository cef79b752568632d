// A file of BucketStorage (bucket_storage.h) that is open for writing or reading.
//
// Threading: BucketWriter is thread-compatible, BucketReader thread-safe; every call blocks on the store. A writer with
// senders waits for them only in Sync and Close, and when it has as many parts under way as it may have.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_BUCKET_FILES_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_BUCKET_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/object_store/object_store.h"
#include "common/object_store/part_senders.h"
#include "common/storage/storage.h"
#include "common/sync/mutex.h"

namespace lockstep {

//   1 buffered ──more than a part──▶ 2 uploading ──Sync or Close──▶ 3 complete
//        └─ every Sync and Close stores the whole file ─▶ 1
//
// When a part cannot be sent, the call that notices it fails, and so do all later calls.
class BucketWriter final : public WritableFile {
 public:
  // `store` and `senders` are not owned. When `senders` is null, the call that fills a part sends it.
  BucketWriter(ObjectStore* store, PartSenders* senders, std::string key, uint64_t part_bytes)
      : store_(*store), senders_(senders), key_(std::move(key)), part_bytes_(part_bytes) {}
  // Aborts an upload that is not complete.
  ~BucketWriter() override;

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Sync() override;
  absl::Status Close() override;

 private:
  absl::Status SendPart();
  void PutPart(size_t index, std::string bytes);
  // Waits until at most `most` parts are under way. Returns the first error of any part.
  absl::Status WaitForParts(int most);
  absl::Status Complete();

  ObjectStore& store_;
  PartSenders* const senders_;
  const std::string key_;
  const uint64_t part_bytes_;
  std::string buffer_;   // without an upload the whole file, else the bytes that are in no part yet
  bool stored_ = false;  // without an upload: buffer_ is stored
  std::optional<Upload> upload_;
  Mutex mutex_;
  CondVar part_ended_;
  std::vector<UploadedPart> parts_ GUARDED_BY(mutex_);
  int under_way_ GUARDED_BY(mutex_) = 0;
  absl::Status failed_ GUARDED_BY(mutex_);  // of a part
  bool complete_ = false;
  bool closed_ = false;
};

class BucketReader final : public ReadableFile {
 public:
  struct Blocks {
    uint64_t first = 0;
    uint64_t longest = 0;
  };

  // A file of `size` bytes that is fetched block by block. `store` is not owned.
  BucketReader(ObjectStore* store, std::string key, uint64_t size, Blocks blocks)
      : store_(*store), key_(std::move(key)), size_(size), blocks_(blocks) {}
  // A file that was fetched whole: `content`.
  BucketReader(ObjectStore* store, std::string key, std::string content)
      : store_(*store), key_(std::move(key)), size_(content.size()), whole_(true), block_(std::move(content)) {}

  uint64_t size() const override { return size_; }
  // Reports the file as private and owned by this user: access to a bucket depends on its keys, not on the file.
  FileFacts facts() const override;
  absl::Status ReadAt(uint64_t offset, absl::Span<char> out) const override;

 private:
  absl::Status Fetch(uint64_t offset, uint64_t wanted) const EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ObjectStore& store_;
  const std::string key_;
  const uint64_t size_;
  const Blocks blocks_;
  const bool whole_ = false;
  mutable Mutex mutex_;
  mutable uint64_t begin_ GUARDED_BY(mutex_) = 0;   // of block_ in the file
  mutable uint64_t length_ GUARDED_BY(mutex_) = 0;  // of the next block when it follows this one
  mutable std::string block_ GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_BUCKET_FILES_H_
