// An object store that forwards every request to another one; tests derive from it to change or observe single
// requests.
//
// Threading: thread-safe if the store below is.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_FORWARDING_OBJECT_STORE_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_FORWARDING_OBJECT_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/object_store/object_store.h"

namespace lockstep {

class ForwardingObjectStore : public ObjectStore {
 public:
  // `below` is not owned.
  explicit ForwardingObjectStore(ObjectStore& below) : below_(below) {}

  absl::Status Put(absl::string_view key, absl::string_view bytes, PutCondition condition) override {
    return below_.Put(key, bytes, condition);
  }
  absl::Status Copy(absl::string_view from, absl::string_view to) override { return below_.Copy(from, to); }
  absl::StatusOr<std::string> Get(absl::string_view key, uint64_t max_bytes) override {
    return below_.Get(key, max_bytes);
  }
  absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset, uint64_t length) override {
    return below_.GetRange(key, offset, length);
  }
  absl::StatusOr<ObjectFacts> Head(absl::string_view key) override { return below_.Head(key); }
  absl::StatusOr<Listing> List(const ListRequest& request) override { return below_.List(request); }
  absl::Status Delete(absl::string_view key) override { return below_.Delete(key); }
  absl::StatusOr<Upload> StartUpload(absl::string_view key) override { return below_.StartUpload(key); }
  absl::StatusOr<UploadedPart> PutPart(const Upload& upload, int number, absl::string_view bytes) override {
    return below_.PutPart(upload, number, bytes);
  }
  absl::Status CompleteUpload(const Upload& upload, absl::Span<const UploadedPart> parts) override {
    return below_.CompleteUpload(upload, parts);
  }
  absl::Status AbortUpload(const Upload& upload) override { return below_.AbortUpload(upload); }
  absl::StatusOr<std::vector<Upload>> ListUploads(absl::string_view prefix) override {
    return below_.ListUploads(prefix);
  }
  std::string Describe(absl::string_view key) const override { return below_.Describe(key); }

 private:
  ObjectStore& below_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_FORWARDING_OBJECT_STORE_H_
