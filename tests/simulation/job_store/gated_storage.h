// The directory as one process sees it: every operation passes the gate of that process (operation_gate.h).
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_JOB_STORE_GATED_STORAGE_H_
#define LOCKSTEP_TESTS_SIMULATION_JOB_STORE_GATED_STORAGE_H_

#include <memory>
#include <string>
#include <vector>

#include "common/storage/forwarding_storage.h"
#include "common/storage/memory/memory_storage.h"
#include "tests/simulation/job_store/operation_gate.h"

namespace lockstep::simulation {

class GatedStorage final : public ForwardingStorage {
 public:
  // Neither is owned; both outlive this and the files that it opens.
  GatedStorage(MemoryStorage& below, OperationGate& gate) : ForwardingStorage(below), memory_(below), gate_(gate) {}

  absl::Status CreateDirectoryExclusive(absl::string_view path) override;
  absl::Status CreateDirectories(absl::string_view path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(absl::string_view path, Access access) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(absl::string_view path) const override;
  absl::StatusOr<std::vector<DirectoryEntry>> List(absl::string_view path) const override;
  absl::StatusOr<bool> Exists(absl::string_view path) const override;
  absl::Status Rename(absl::string_view from, absl::string_view to) override;
  absl::Status Link(absl::string_view from, absl::string_view to) override;
  absl::Status Replace(absl::string_view from, absl::string_view to) override;
  absl::Status RemoveTree(absl::string_view path) override;
  absl::Status SyncDirectory(absl::string_view path) override;
  // Always succeeds: each chief is on a machine of its own, where locks exclude nobody.
  absl::StatusOr<std::unique_ptr<StorageLock>> Lock(absl::string_view path, absl::string_view owner) override;

 private:
  MemoryStorage& memory_;
  OperationGate& gate_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_JOB_STORE_GATED_STORAGE_H_
