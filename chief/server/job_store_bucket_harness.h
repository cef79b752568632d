// A test harness: a tiny job in a bucket of its own, in memory or on a fake S3 server, with several chiefs one after
// the other.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_STORE_BUCKET_HARNESS_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_STORE_BUCKET_HARNESS_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "chief/server/job_store_harness.h"
#include "common/job_place/job_place.h"
#include "common/object_store/forwarding_object_store.h"
#include "common/object_store/memory_object_store.h"
#include "common/object_store/s3_on_fake.h"
#include "common/storage/files.h"

namespace lockstep::chief {

// An object store that calls `before` ahead of each request, except uploads; an error from `before` is returned instead
// of performing the request.
class WatchedObjects final : public ForwardingObjectStore {
 public:
  using ForwardingObjectStore::ForwardingObjectStore;
  std::function<absl::Status()> before = [] { return absl::OkStatus(); };

  absl::Status Put(absl::string_view key, absl::string_view bytes, PutCondition condition) override {
    const absl::Status status = before();
    return status.ok() ? ForwardingObjectStore::Put(key, bytes, condition) : status;
  }
  absl::StatusOr<std::string> Get(absl::string_view key, uint64_t max_bytes) override {
    const absl::Status status = before();
    return status.ok() ? ForwardingObjectStore::Get(key, max_bytes) : status;
  }
  absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset, uint64_t length) override {
    const absl::Status status = before();
    return status.ok() ? ForwardingObjectStore::GetRange(key, offset, length) : status;
  }
  absl::StatusOr<ObjectFacts> Head(absl::string_view key) override {
    const absl::Status status = before();
    return status.ok() ? ForwardingObjectStore::Head(key) : status;
  }
  absl::StatusOr<Listing> List(const ListRequest& request) override {
    const absl::Status status = before();
    return status.ok() ? ForwardingObjectStore::List(request) : status;
  }
  absl::Status Delete(absl::string_view key) override {
    const absl::Status status = before();
    return status.ok() ? ForwardingObjectStore::Delete(key) : status;
  }
};

// A job in a bucket of its own.
struct BucketJob : Job {
  explicit BucketJob(bool over_s3 = false) {
    if (over_s3) fake = std::make_unique<S3OnFake>();
    objects = over_s3 ? static_cast<ObjectStore*>(fake->store.get()) : &memory;
    place = [this] { return std::make_unique<JobPlace>(objects); };
  }

  CommitRecord Newest() {
    BucketStorage bucket(objects);
    return *ReadNewestRecord(bucket).value();
  }
  // The folders of all stored checkpoints.
  std::set<std::string> Standing() {
    std::set<std::string> folders;
    BucketStorage bucket(objects);
    const auto entries = bucket.List(layout::kCheckpoints).value();
    for (const DirectoryEntry& entry : entries) folders.insert(JoinPath(layout::kCheckpoints, entry.name));
    return folders;
  }
  // The folders of the checkpoints that the newest record names as live.
  std::set<std::string> Live() {
    std::set<std::string> prefixes;
    const CommitRecord record = Newest();
    for (const LiveCheckpoint& live : record.live()) prefixes.insert(live.prefix());
    return prefixes;
  }
  std::string PrefixOf(int64_t step) {
    const CommitRecord record = Newest();
    for (const LiveCheckpoint& live : record.live()) {
      if (live.step() == step) return live.prefix();
    }
    return "";
  }
  EvaluationLedger Ledger(uint64_t step) {
    return Judge(rule(), EvaluationLedger(), step, {.loss = 1, .denominator = 1});
  }

  MemoryObjectStore memory;
  std::unique_ptr<S3OnFake> fake;
  ObjectStore* objects = nullptr;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_STORE_BUCKET_HARNESS_H_
