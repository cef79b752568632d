#include "common/job_place/job_place.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/commit_log/commit_log.h"
#include "common/object_store/aws_profile.h"
#include "common/object_store/object_slots.h"
#include "common/object_store/s3_object_store.h"
#include "common/object_store/s3_url.h"
#include "common/status/status_macros.h"
#include "common/storage/local/local_storage.h"

namespace lockstep {
namespace {

absl::StatusOr<std::unique_ptr<JobPlace>> OpenBucket(const std::string& url, absl::Duration patience) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> objects,
                      S3ObjectStore::Open(url, ProcessEnvironment(), {.patience = patience}));
  return std::make_unique<JobPlace>(std::move(objects));
}

absl::StatusOr<std::unique_ptr<JobPlace>> OfDirectory(absl::StatusOr<std::unique_ptr<LocalStorage>> storage) {
  LS_RETURN_IF_ERROR(storage.status());
  return std::make_unique<JobPlace>(std::unique_ptr<Storage>(*std::move(storage)));
}

}  // namespace

bool IsInBucket(absl::string_view where) { return IsS3Url(where); }

absl::StatusOr<std::unique_ptr<JobPlace>> JobPlace::Open(const std::string& where, absl::Duration patience) {
  LS_RETURN_IF_ERROR(CheckPlace(where));
  if (IsInBucket(where)) return OpenBucket(where, patience);
  return OfDirectory(LocalStorage::Open(where));
}

absl::StatusOr<std::unique_ptr<JobPlace>> JobPlace::Create(const std::string& where) {
  LS_RETURN_IF_ERROR(CheckPlace(where));
  if (IsInBucket(where)) return OpenBucket(where, kPatience);
  return OfDirectory(LocalStorage::Create(where));
}

absl::StatusOr<std::optional<CommitRecord>> ReadNewestRecord(BucketStorage& bucket) {
  ObjectSlots slots(&bucket.objects(), layout::kLog);
  CommitLog log(&slots, [] { return std::string(); });  // which appends nothing
  std::vector<std::string> messages;
  absl::StatusOr<CommitRecord> record = log.Read(messages);
  if (absl::IsNotFound(record.status())) return std::optional<CommitRecord>();
  LS_RETURN_IF_ERROR(record.status());
  return std::optional<CommitRecord>(*std::move(record));
}

absl::StatusOr<std::string> ReadAddressInLog(BucketStorage& bucket) {
  LS_ASSIGN_OR_RETURN(const std::optional<CommitRecord> record, ReadNewestRecord(bucket));
  if (record.has_value() && !record->owner().address().empty()) return record->owner().address();
  return absl::NotFoundError(absl::StrCat(
      bucket.Describe(layout::kLog),
      record.has_value() ? " gives no address of a chief (yet)" : " has no record: no chief has begun the job (yet)"));
}

}  // namespace lockstep
