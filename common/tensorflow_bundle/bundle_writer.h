// Writes a TensorFlow V2 checkpoint: data files and their index (docs/formats/tensorflow.md).
//
//   1 adding ──Finish──▶ 2 placed        Files have scratch names until then. The index is renamed last, so a
//      └── error, destroyed ─▶ nothing   checkpoint is complete once its index exists.
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_BUNDLE_WRITER_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_BUNDLE_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/storage/storage.h"
#include "common/tensor/tensor.h"
#include "common/tensorflow_bundle/bundle_index.h"

namespace lockstep {

class BundleWriter {
 public:
  static constexpr uint64_t kShardBytes = uint64_t{4} << 30;
  using TakeBytes = std::function<absl::Status(absl::string_view)>;
  // Passes the bytes of a tensor, in pieces, to the TakeBytes.
  using GiveBytes = std::function<absl::Status(const TakeBytes&)>;

  // Begins PREFIX.index and its data files. A data file takes tensors up to `shard_bytes`, or a single larger one.
  // AlreadyExists when there is a checkpoint of that prefix, which stays unchanged. `storage` outlives the writer.
  static absl::StatusOr<std::unique_ptr<BundleWriter>> Begin(Storage& storage, absl::string_view prefix,
                                                             uint64_t shard_bytes = kShardBytes);
  ~BundleWriter();
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // Adds a tensor, whose name is its key. InvalidArgument for a repeated or empty key. Internal when `give` passes
  // another number of bytes than the tensor has. After an error the writer can only be destroyed.
  absl::Status Add(const TensorSpec& tensor, const GiveBytes& give);
  // Adds a scalar string.
  absl::Status AddString(absl::string_view key, absl::string_view value);

  // Gives the files their final names, durably, and returns their total bytes. AlreadyExists when another writer was
  // first, or a data file exists; existing files stay unchanged.
  absl::StatusOr<uint64_t> Finish();

 private:
  BundleWriter(Storage& storage, absl::string_view prefix, uint64_t shard_bytes);

  absl::Status Write(BundleEntry entry, const GiveBytes& give);
  absl::Status MakeRoom(uint64_t bytes);
  absl::Status CloseShard();
  absl::Status Place();
  absl::Status Rename(const std::string& scratch, const std::string& name);
  std::string Scratch(absl::string_view what) const;

  Storage& storage_;
  const std::string prefix_;
  const std::string scratch_;  // part of the scratch names, unique to this writer
  const uint64_t shard_bytes_;
  BundleIndex index_;
  std::set<std::string> keys_;
  std::unique_ptr<WritableFile> file_;  // the newest data file; null: it is closed, or there is none
  uint64_t file_bytes_ = 0;
  uint64_t bytes_ = 0;             // of all files
  std::vector<std::string> made_;  // files to remove unless all goes well
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_BUNDLE_WRITER_H_
