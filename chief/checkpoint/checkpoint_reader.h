// Reads and verifies one published checkpoint, for restores and for the command line. Changes nothing.
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_READER_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_READER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/checkpoint_format/checkpoint_tensor.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/safetensors.h"
#include "common/checkpoint_format/shares.h"
#include "common/digest/state_digest.h"
#include "common/storage/storage.h"
#include "protos/checkpoint.pb.h"
#include "protos/commit_log.pb.h"

namespace lockstep::chief {

class CheckpointReader {
 public:
  // Receives the next bytes of a tensor.
  using TakeBytes = std::function<absl::Status(absl::string_view)>;
  // Receives the number of tensor bytes that were processed since the last call.
  using OnBytes = std::function<void(uint64_t)>;
  static constexpr int kReadingThreads = 4;

  // Opens the checkpoint at `path` ("checkpoints/step-…", layout::ParseCheckpointFolder): reads the manifest, the sizes
  // of files, safetensors headers and indexes, and compares them with each other. Reads no tensor bytes yet. DataLoss
  // names the first mismatch. NotFound, from every call that reads: the checkpoint does not exist, or was removed
  // meanwhile.
  static absl::StatusOr<CheckpointReader> Open(const Storage& storage, std::string path);
  // As Open, for a folder of any name: a backup, or a checkpoint that was set aside.
  static absl::StatusOr<CheckpointReader> OpenFolder(const Storage& storage, std::string path);

  // Reads every byte and compares it with the manifest's digests of files and of each leaf of each tensor. `threads`: 0
  // chooses up to four, depending on the size. `on_bytes` is called by one thread at a time. DataLoss names the first
  // wrong file, or tensor and range. Cancelled: `stop` became true.
  absl::Status VerifyContent(const std::atomic<bool>* stop = nullptr, const OnBytes& on_bytes = nullptr,
                             int threads = 0) const;

  // Passes the bytes of layout()[tensor] to `take`, leaf by leaf, each after its digest was verified. DataLoss: the
  // bytes are not those of the manifest; format version 1 has no leaves, so there this is known only after the last
  // piece. An error of `take` ends the call and is returned.
  absl::Status StreamTensor(size_t tensor, const TakeBytes& take) const;

  // Computes the digests from the bytes of the files alone, in the order of layout().
  absl::StatusOr<StateDigests> ComputeDigests() const;

  const Manifest& manifest() const { return manifest_; }
  const Storage& storage() const { return *storage_; }
  const std::string& path() const { return path_; }
  // The state, sorted by name.
  const std::vector<CheckpointTensor>& layout() const { return layout_; }

  // A tensor in the files of its group.
  struct TensorInFile {
    TensorSpec spec;      // with the name that the file uses
    size_t position = 0;  // in layout()
  };
  std::vector<TensorInFile> TensorsOf(absl::string_view group) const;
  // The bytes of all tensors of `group`; of all groups if empty.
  uint64_t TensorBytes(absl::string_view group = "") const;

  // Reads out.size() bytes of a tensor, from `offset`.
  absl::Status ReadTensor(absl::string_view name, uint64_t offset, absl::Span<char> out) const;

  // Reads `out.size()` bytes of a share's stream from `offset`. `share` comes from PlanShares over `layout`, which must
  // list the same tensors as this checkpoint (in any order); the number of shares is free.
  absl::Status ReadShare(absl::Span<const CheckpointTensor> layout, const Share& share, uint64_t offset,
                         absl::Span<char> out) const;

  // OK if the checkpoint holds exactly the tensors of `layout`, in any order. FailedPrecondition names the first
  // difference.
  absl::Status CheckLayout(absl::Span<const CheckpointTensor> layout) const;

  // The job.yaml that was saved with the checkpoint.
  absl::StatusOr<std::string> ReadJob() const;

 private:
  CheckpointReader(const Storage& storage, std::string path) : storage_(&storage), path_(std::move(path)) {}

  // Turns NotFound of a file into DataLoss while the checkpoint itself exists.
  absl::Status ExplainMissing(const absl::Status& status) const;
  absl::Status OpenFiles();
  absl::Status CheckTensors() const;
  absl::Status CheckIndex(absl::string_view group) const;
  absl::Status VerifyFile(const ManifestFile& file) const;
  // A leaf of layout()[tensor].
  struct Leaf {
    size_t tensor = 0;
    uint64_t index = 0;
  };
  // Reads all leaves on `threads` threads (as VerifyContent), and passes each to `take` on one of them. Returns the
  // first error in the order of leaves.
  absl::Status ForEachLeaf(int threads, const std::atomic<bool>* stop,
                           const std::function<absl::Status(const Leaf&, absl::string_view)>& take) const;
  absl::Status ReadLeaf(const Leaf& leaf, std::vector<char>& out) const;
  absl::Status CheckLeaf(const Leaf& leaf, absl::string_view bytes) const;
  absl::Status StreamFlat(size_t tensor, const TakeBytes& take) const;
  bool has_leaves() const { return manifest_.format_version() >= kManifestWithLeaves; }

  const Storage* storage_;
  std::string path_;
  Manifest manifest_;
  std::vector<CheckpointTensor> layout_;
  std::map<std::string, SafetensorsReader> files_;  // by path relative to the checkpoint
  std::map<std::string, int> tensors_;              // index in the manifest, by name
};

// One line of `checkpoint ls`.
struct CheckpointSummary {
  std::string name;     // "step-000001200"
  std::string path;     // the folder
  absl::Status status;  // of Open
  Manifest manifest;    // empty when the status is not OK
};

// The folders of a job's checkpoints, in any order.
using CheckpointPaths = std::vector<std::string>;

// The checkpoints of a directory; empty if there are none.
absl::StatusOr<CheckpointPaths> CheckpointsOfDirectory(const Storage& storage);
// The checkpoints that a job in a bucket has according to this record of its log.
CheckpointPaths CheckpointsOfRecord(const CommitRecord& record);

// Opens all of `paths`, newest first; leaves out those that were removed meanwhile.
absl::StatusOr<std::vector<CheckpointSummary>> ListCheckpoints(const Storage& storage, const CheckpointPaths& paths);
// All checkpoints of a directory.
absl::StatusOr<std::vector<CheckpointSummary>> ListCheckpoints(const Storage& storage);

// Opens the checkpoint of `step`, or the newest one that opens. NotFound: there is none. If the one of `step` is
// damaged, returns its error.
absl::StatusOr<CheckpointReader> OpenCheckpoint(const Storage& storage, const CheckpointPaths& paths,
                                                std::optional<int64_t> step);
// As above, for a directory.
absl::StatusOr<CheckpointReader> OpenCheckpoint(const Storage& storage, std::optional<int64_t> step);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_READER_H_
