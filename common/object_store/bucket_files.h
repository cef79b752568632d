// One file of a bucket that is written or read (bucket_storage.h).
//
// Threading: BucketWriter is thread-compatible, BucketReader thread-safe; every call blocks on the store. A writer with
// senders blocks on what they have sent only in Sync and Close, and while it may have no more parts under way.
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
// A part that could not be sent fails the call that finds out, and those after it.
class BucketWriter final : public WritableFile {
 public:
  // Neither is owned; without `senders` every part is sent by the call that fills it.
  BucketWriter(ObjectStore* store, PartSenders* senders, std::string key, uint64_t part_bytes)
      : store_(*store), senders_(senders), key_(std::move(key)), part_bytes_(part_bytes) {}
  // Gives an upload up that is not complete.
  ~BucketWriter() override;

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Sync() override;
  absl::Status Close() override;

 private:
  absl::Status SendPart();
  void PutPart(size_t index, std::string bytes);
  // Until at most `most` parts are under way. The first error of one that was.
  absl::Status WaitForParts(int most);
  absl::Status Complete();

  ObjectStore& store_;
  PartSenders* const senders_;
  const std::string key_;
  const uint64_t part_bytes_;
  std::string buffer_;   // of a file without an upload all of it, else what is in no part yet
  bool stored_ = false;  // what buffer_ holds; of a file without an upload
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

  // A file of this size that is fetched block by block. `store` is not owned.
  BucketReader(ObjectStore* store, std::string key, uint64_t size, Blocks blocks)
      : store_(*store), key_(std::move(key)), size_(size), blocks_(blocks) {}
  // A file that was fetched whole.
  BucketReader(ObjectStore* store, std::string key, std::string content)
      : store_(*store), key_(std::move(key)), size_(content.size()), whole_(true), block_(std::move(content)) {}

  uint64_t size() const override { return size_; }
  // Whoever has the keys of the bucket may read and write it: that is not told by a file.
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
