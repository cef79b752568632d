// Opens the place where a job is kept: its directory on this machine, or its prefix in a bucket (s3://bucket/prefix).
//
// Threading: thread-safe; opening a place and every call of the storages that it returns block.
#ifndef LOCKSTEP_COMMON_JOB_PLACE_JOB_PLACE_H_
#define LOCKSTEP_COMMON_JOB_PLACE_JOB_PLACE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/object_store/bucket_storage.h"
#include "common/object_store/object_store.h"
#include "common/storage/storage.h"
#include "protos/commit_log.pb.h"

namespace lockstep {

class JobPlace {
 public:
  // Parts of checkpoints that are sent to a bucket at the same time; each takes 8 MiB of memory.
  static constexpr int kSenders = 8;
  // How long a call to a bucket waits for an answer; a directory has no such limit.
  static constexpr absl::Duration kPatience = absl::Seconds(60);

  // Opens an existing place. NotFound when there is no such directory; a bucket is not contacted yet. A bucket's keys
  // and endpoint are those of the environment (common/object_store/s3_credentials.h). InvalidArgument when the URL or
  // one of those settings is wrong.
  static absl::StatusOr<std::unique_ptr<JobPlace>> Open(const std::string& where, absl::Duration patience = kPatience);
  // As Open, but creates a missing directory.
  static absl::StatusOr<std::unique_ptr<JobPlace>> Create(const std::string& where);

  explicit JobPlace(std::unique_ptr<Storage> directory) : directory_(std::move(directory)) {}
  explicit JobPlace(std::unique_ptr<ObjectStore> objects)
      : objects_(std::move(objects)),
        bucket_(std::make_unique<BucketStorage>(objects_.get(), BucketStorage::Limits{.senders = kSenders})) {}
  // `objects` is not owned.
  explicit JobPlace(ObjectStore* objects) : bucket_(std::make_unique<BucketStorage>(objects)) {}

  Storage& storage() const { return bucket_ == nullptr ? *directory_ : *bucket_; }
  // Null when the place is a directory.
  BucketStorage* bucket() const { return bucket_.get(); }

 private:
  std::unique_ptr<Storage> directory_;
  std::unique_ptr<ObjectStore> objects_;
  std::unique_ptr<BucketStorage> bucket_;
};

// Whether `where` names a place in a bucket.
bool IsInBucket(absl::string_view where);

// The newest whole record of the job's log in a bucket; nullopt when there is none. Codes of CommitLog::Read.
absl::StatusOr<std::optional<CommitRecord>> ReadNewestRecord(BucketStorage& bucket);

// Where the chief of the newest term of a job in a bucket listens, HOST:PORT. NotFound when no address is recorded
// (yet).
absl::StatusOr<std::string> ReadAddressInLog(BucketStorage& bucket);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_PLACE_JOB_PLACE_H_
