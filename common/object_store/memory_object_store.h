// Objects in memory, with simulated network faults, for tests.
//
// Threading: thread-safe; `next_fault` is set before the threads start, and is called under the lock.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_MEMORY_OBJECT_STORE_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_MEMORY_OBJECT_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/object_store/object_store.h"
#include "common/sync/mutex.h"

namespace lockstep {

enum class ObjectFault : uint8_t {
  kNone,
  kLost,        // the request does not arrive: Unavailable
  kAnswerLost,  // it takes effect: Unavailable all the same
  kTwice,       // it arrives twice, and the caller gets the second answer
  kLate,        // Unavailable; a Put takes effect when Arrive is called, other requests never
  kRefused,     // 409, 429 or 503 for as long as the caller asks: Unavailable
};
constexpr int kObjectFaults = 6;

class MemoryObjectStore final : public ObjectStore {
 public:
  // Called before each request.
  std::function<ObjectFault()> next_fault = [] { return ObjectFault::kNone; };

  absl::Status Put(absl::string_view key, absl::string_view bytes, PutCondition condition) override;
  absl::Status Copy(absl::string_view from, absl::string_view to) override;
  absl::StatusOr<std::string> Get(absl::string_view key, uint64_t max_bytes) override;
  absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset, uint64_t length) override;
  absl::StatusOr<ObjectFacts> Head(absl::string_view key) override;
  absl::StatusOr<Listing> List(const ListRequest& request) override;
  absl::Status Delete(absl::string_view key) override;
  absl::StatusOr<Upload> StartUpload(absl::string_view key) override;
  absl::StatusOr<UploadedPart> PutPart(const Upload& upload, int number, absl::string_view bytes) override;
  absl::Status CompleteUpload(const Upload& upload, absl::Span<const UploadedPart> parts) override;
  absl::Status AbortUpload(const Upload& upload) override;
  absl::StatusOr<std::vector<Upload>> ListUploads(absl::string_view prefix) override;
  std::string Describe(absl::string_view key) const override;

  // Lets `count` late Puts take effect, the oldest first.
  void Arrive(size_t count);
  size_t late() const;

 private:
  struct Parts {
    std::string key;
    std::map<int, std::string> bytes;
  };
  struct LatePut {
    std::string key, bytes;
    PutCondition condition;
  };

  // Runs `effect` as the next fault demands.
  template <typename Result, typename Effect>
  Result Apply(const Effect& effect) EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Store(const std::string& key, absl::string_view bytes, PutCondition condition)
      EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Assemble(const Upload& upload, absl::Span<const UploadedPart> parts) EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Object {
    std::string bytes;
    std::string etag;
  };

  mutable Mutex mutex_;
  std::map<std::string, Object> objects_ GUARDED_BY(mutex_);
  std::map<std::string, Parts> uploads_ GUARDED_BY(mutex_);  // by id
  std::vector<LatePut> late_ GUARDED_BY(mutex_);
  uint64_t last_id_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_MEMORY_OBJECT_STORE_H_
