// The bucket as one process sees it: every request passes the gate of that process (operation_gate.h).
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_JOB_STORE_GATED_OBJECTS_H_
#define LOCKSTEP_TESTS_SIMULATION_JOB_STORE_GATED_OBJECTS_H_

#include <string>
#include <vector>

#include "common/object_store/forwarding_object_store.h"
#include "common/status/status_macros.h"
#include "tests/simulation/job_store/operation_gate.h"

namespace lockstep::simulation {

class GatedObjects final : public ForwardingObjectStore {
 public:
  // Neither is owned; both outlive this.
  GatedObjects(ObjectStore& below, OperationGate& gate) : ForwardingObjectStore(below), gate_(gate) {}

  absl::Status Put(absl::string_view key, absl::string_view bytes, PutCondition condition) override {
    LS_RETURN_IF_ERROR(gate_.Before(/*writes=*/true));
    return ForwardingObjectStore::Put(key, bytes, condition);
  }
  absl::Status Copy(absl::string_view from, absl::string_view to) override {
    LS_RETURN_IF_ERROR(gate_.Before(/*writes=*/true));
    return ForwardingObjectStore::Copy(from, to);
  }
  absl::StatusOr<std::string> Get(absl::string_view key, uint64_t max_bytes) override {
    LS_RETURN_IF_ERROR(gate_.Before(/*writes=*/false));
    return ForwardingObjectStore::Get(key, max_bytes);
  }
  absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset, uint64_t length) override {
    LS_RETURN_IF_ERROR(gate_.Before(/*writes=*/false));
    return ForwardingObjectStore::GetRange(key, offset, length);
  }
  absl::StatusOr<ObjectFacts> Head(absl::string_view key) override {
    LS_RETURN_IF_ERROR(gate_.Before(/*writes=*/false));
    return ForwardingObjectStore::Head(key);
  }
  absl::StatusOr<Listing> List(const ListRequest& request) override {
    LS_RETURN_IF_ERROR(gate_.Before(/*writes=*/false));
    return ForwardingObjectStore::List(request);
  }
  absl::Status Delete(absl::string_view key) override {
    LS_RETURN_IF_ERROR(gate_.Before(/*writes=*/true));
    return ForwardingObjectStore::Delete(key);
  }
  absl::StatusOr<Upload> StartUpload(absl::string_view key) override {
    LS_RETURN_IF_ERROR(gate_.Before(/*writes=*/true));
    return ForwardingObjectStore::StartUpload(key);
  }
  absl::StatusOr<UploadedPart> PutPart(const Upload& upload, int number, absl::string_view bytes) override {
    LS_RETURN_IF_ERROR(gate_.Before(/*writes=*/true));
    return ForwardingObjectStore::PutPart(upload, number, bytes);
  }
  absl::Status CompleteUpload(const Upload& upload, absl::Span<const UploadedPart> parts) override {
    LS_RETURN_IF_ERROR(gate_.Before(/*writes=*/true));
    return ForwardingObjectStore::CompleteUpload(upload, parts);
  }
  absl::Status AbortUpload(const Upload& upload) override {
    LS_RETURN_IF_ERROR(gate_.Before(/*writes=*/true));
    return ForwardingObjectStore::AbortUpload(upload);
  }
  absl::StatusOr<std::vector<Upload>> ListUploads(absl::string_view prefix) override {
    LS_RETURN_IF_ERROR(gate_.Before(/*writes=*/false));
    return ForwardingObjectStore::ListUploads(prefix);
  }

 private:
  OperationGate& gate_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_JOB_STORE_GATED_OBJECTS_H_
