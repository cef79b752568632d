// Slots on a Storage: slot n is the directory `<folder>/<10^19 - 1 - n in 20 digits>` with one file. Create writes it
// under a unique scratch name, syncs it, and renames it once. The rename fails when the slot's directory exists and is
// not empty: this is exclusive on local disks and on network mounts alike, even on those without links or exclusive
// renames of files.
//
// A crash may leave a directory with a scratch name, which SweepLeftovers removes.
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_COMMON_COMMIT_LOG_STORAGE_SLOTS_H_
#define LOCKSTEP_COMMON_COMMIT_LOG_STORAGE_SLOTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/commit_log/slots.h"
#include "common/storage/storage.h"

namespace lockstep {

class StorageSlots final : public Slots {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{16} << 20;  // of a slot

  // `storage` is not owned. `make_name` returns letters and digits that are unique over all calls and processes.
  StorageSlots(Storage* storage, std::string folder, std::function<std::string()> make_name)
      : storage_(*storage), folder_(std::move(folder)), make_name_(std::move(make_name)) {}

  absl::StatusOr<std::vector<uint64_t>> Newest(size_t limit) override;
  // DataLoss: the slot is filled, and its file is gone or longer than any record.
  absl::StatusOr<std::string> Get(uint64_t number) override;
  absl::Status Create(uint64_t number, absl::string_view bytes) override;
  absl::Status Remove(uint64_t number) override;
  std::string Describe(uint64_t number) const override { return storage_.Describe(FileOf(number)); }

  // Removes the scratch directories of killed processes. A Create that another process has under way then fails.
  absl::Status SweepLeftovers();

 private:
  std::string PathOf(uint64_t number) const;
  std::string FileOf(uint64_t number) const;
  std::string LeftoverPath(absl::string_view what) const;
  // Renames `path` to a scratch name before it removes the tree, so that a reader finds a whole record or none.
  absl::Status RemoveNameFirst(const std::string& path);

  Storage& storage_;
  const std::string folder_;
  const std::function<std::string()> make_name_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COMMIT_LOG_STORAGE_SLOTS_H_
