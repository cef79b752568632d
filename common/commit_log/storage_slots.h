// Slots on a Storage: slot n is the directory `<folder>/<20 digits of 10^20 - 1 - n>` with one file. It is written
// under a name of its own, synced, and gets its own by one rename, which fails where a directory that is not empty
// stands: that is exclusive on local disks and on network mounts alike, also where links or exclusive renames of files
// are not.
//
// What a crash leaves is a directory under a name of its own, for SweepLeftovers.
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

  // `storage` is not owned. `make_name` gives another word of letters and digits at each call, in every process.
  StorageSlots(Storage* storage, std::string folder, std::function<std::string()> make_name)
      : storage_(*storage), folder_(std::move(folder)), make_name_(std::move(make_name)) {}

  absl::StatusOr<std::vector<uint64_t>> Newest(size_t limit) override;
  // DataLoss: the slot is filled, and its file is gone or longer than any record.
  absl::StatusOr<std::string> Get(uint64_t number) override;
  absl::Status Create(uint64_t number, absl::string_view bytes) override;
  absl::Status Remove(uint64_t number) override;
  std::string Describe(uint64_t number) const override { return storage_.Describe(FileOf(number)); }

  // Removes what killed processes have left. A Create that is under way in another process fails.
  absl::Status SweepLeftovers();

 private:
  std::string PathOf(uint64_t number) const;
  std::string FileOf(uint64_t number) const;
  std::string LeftoverPath(absl::string_view what) const;
  // A reader finds all of a record, or none; and a record that gets its slot meanwhile is whole.
  absl::Status RemoveNameFirst(const std::string& path);

  Storage& storage_;
  const std::string folder_;
  const std::function<std::string()> make_name_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COMMIT_LOG_STORAGE_SLOTS_H_
