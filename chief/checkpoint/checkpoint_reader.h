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
  // Takes some of the bytes of a tensor.
  using TakeBytes = std::function<absl::Status(absl::string_view)>;
  // Hears how many more bytes of tensors are done.
  using OnBytes = std::function<void(uint64_t)>;
  static constexpr int kReadingThreads = 4;

  // Opens the checkpoint at `path` ("checkpoints/step-…", layout::ParseCheckpointFolder): manifest, files' sizes,
  // safetensors headers and indexes, all compared with each other. Tensor bytes are not read yet. DataLoss names the
  // first thing that is wrong. NotFound: the checkpoint is not there, or was removed meanwhile, of every call that
  // reads.
  static absl::StatusOr<CheckpointReader> Open(const Storage& storage, std::string path);
  // The same in a folder of any name: a backup, or one that was set aside.
  static absl::StatusOr<CheckpointReader> OpenFolder(const Storage& storage, std::string path);

  // Reads every byte and compares it with the digests of the manifest: of files, and of each leaf of each tensor. On
  // `threads` threads; 0: on up to four, as many as its size is worth. `on_bytes` is called by one at a time. DataLoss
  // names the first file, or tensor and range, that is wrong. Cancelled: `stop` became true.
  absl::Status VerifyContent(const std::atomic<bool>* stop = nullptr, const OnBytes& on_bytes = nullptr,
                             int threads = 0) const;

  // Hands the bytes of layout()[tensor] to `take`, leaf by leaf, each after it was compared with its digest. DataLoss:
  // they are not those of the manifest. Of a manifest of format version 1, which has no leaves, that is known after the
  // last piece only. Errors of `take` end it.
  absl::Status StreamTensor(size_t tensor, const TakeBytes& take) const;

  // The digests computed from the files' bytes alone, in the order of layout().
  absl::StatusOr<StateDigests> ComputeDigests() const;

  const Manifest& manifest() const { return manifest_; }
  const Storage& storage() const { return *storage_; }
  const std::string& path() const { return path_; }
  // The state, sorted by name.
  const std::vector<CheckpointTensor>& layout() const { return layout_; }

  // A tensor as the files of its group have it.
  struct TensorInFile {
    TensorSpec spec;      // under its name there
    size_t position = 0;  // in layout()
  };
  std::vector<TensorInFile> TensorsOf(absl::string_view group) const;
  // Bytes of the tensors of `group`; empty: of all of them.
  uint64_t TensorBytes(absl::string_view group = "") const;

  // Reads a whole tensor or a part of it.
  absl::Status ReadTensor(absl::string_view name, uint64_t offset, absl::Span<char> out) const;

  // Reads `out.size()` bytes of a share's stream from `offset`. `plan` comes from PlanShards over `layout`, which must
  // list the same tensors as this checkpoint (in any order); the number of shares may be any.
  absl::Status ReadShare(absl::Span<const CheckpointTensor> layout, const Share& share, uint64_t offset,
                         absl::Span<char> out) const;

  // OK when the checkpoint holds exactly the tensors of `layout`, in any order. FailedPrecondition names the first
  // difference.
  absl::Status CheckLayout(absl::Span<const CheckpointTensor> layout) const;

  // The text of job.yaml as it was saved.
  absl::StatusOr<std::string> ReadJob() const;

 private:
  CheckpointReader(const Storage& storage, std::string path) : storage_(&storage), path_(std::move(path)) {}

  // A file that is missing while the checkpoint is there is damage, not an absence to be handled.
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
  // Reads leaves on so many threads (as VerifyContent), and hands each to `take` on one of them. The first error in
  // their order ends it.
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
  std::string path;     // where it lies
  absl::Status status;  // of Open
  Manifest manifest;    // empty when the status is not OK
};

// Where the checkpoints of a job are, in any order.
using CheckpointPaths = std::vector<std::string>;

// Those of a directory. An empty list when there is none.
absl::StatusOr<CheckpointPaths> CheckpointsOfDirectory(const Storage& storage);
// Those that a job in a bucket has by this record of its log.
CheckpointPaths CheckpointsOfRecord(const CommitRecord& record);

// Opens each of them, newest first; one that was removed meanwhile is left out.
absl::StatusOr<std::vector<CheckpointSummary>> ListCheckpoints(const Storage& storage, const CheckpointPaths& paths);
// Every checkpoint of a directory.
absl::StatusOr<std::vector<CheckpointSummary>> ListCheckpoints(const Storage& storage);

// Opens the checkpoint of a step, or the newest one that opens. NotFound when there is none; for a step that is there
// and damaged, its error.
absl::StatusOr<CheckpointReader> OpenCheckpoint(const Storage& storage, const CheckpointPaths& paths,
                                                std::optional<int64_t> step);
// The same of a directory.
absl::StatusOr<CheckpointReader> OpenCheckpoint(const Storage& storage, std::optional<int64_t> step);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_READER_H_
