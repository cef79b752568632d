// Receives the shares of one save as they stream in, and writes them as safetensors files below the staging directory.
// The headers are known before the first byte arrives, so every file is written sequentially, once.
//
//   1 open ──AcceptLeaf…──▶ 2 complete (every share's last byte stored and synced) ──Finish──▶ 3 stored
//
// Invariants
//   * A share is accepted by (lineage, step, digest of the whole state), whatever its generation or sender (rule 19).
//     Another sender can continue a share where the last one stopped.
//   * Bytes are written by whole leaves (common/digest/state_digest.h), each verified before (share_receiver.h), so
//     wrong bytes of one sender never block the next one.
//   * Finish succeeds only if the digests of the bytes on their way to disk combine to the announced one (rule 20).
// Threading: thread-safe; every call blocks on the storage. Shares are received in parallel: the bytes of one sender
// are digested while another's are written. Finish and Abandon may be called while senders are still active.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_SHARD_SINK_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_SHARD_SINK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chief/term/term_claim.h"
#include "common/checkpoint_format/checkpoint_tensor.h"
#include "common/checkpoint_format/shares.h"
#include "common/digest/sha256.h"
#include "common/protocol/ids.h"
#include "common/sync/mutex.h"
#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

// A checkpoint whose frozen tensors a save may reuse. REQUIRES: its content was verified, or written by this chief.
struct FrozenSource {
  const Manifest* manifest = nullptr;
  std::string path;  // of the checkpoint
};

// The files of a save, all durable in `directory`, not yet published.
struct StoredShards {
  SnapshotId id;
  std::string directory;
  std::vector<ManifestTensor> tensors;
  std::vector<ManifestFile> files;
};

class ShardSink {
 public:
  // Opens a save of `shares` shares (PlanSave) of a state with this layout. `hold` is not owned. The frozen share is
  // complete from the start if the storage can link its files from one of `sources`, newest first. On a disk two copies
  // are linked alternately, so that damage to one file does not damage every checkpoint. ResourceExhausted: the disk
  // has too few free bytes for the rest.
  static absl::StatusOr<std::unique_ptr<ShardSink>> Open(TermHold& hold, SnapshotId id,
                                                         std::vector<CheckpointTensor> layout, int shares,
                                                         absl::Span<const FrozenSource> sources = {});
  ~ShardSink();

  // Stores the leaf that begins at `offset` of a share's stream; `digest` is that of `bytes`. A leaf that is stored
  // already is skipped. Codes: InvalidArgument (no such share, or no leaf of it), OutOfRange (a gap: continue at
  // NextOffset), else of the storage; after one of those only Abandon helps.
  absl::Status AcceptLeaf(int share, uint64_t offset, absl::string_view bytes, const Sha256Digest& digest);

  int shares() const { return static_cast<int>(shares_.size()); }
  const SnapshotId& id() const { return id_; }
  const std::vector<CheckpointTensor>& layout() const { return layout_; }
  // REQUIRES, of this and the next two: 0 <= share < shares().
  const Share& share(int share) const { return plan_.shares[static_cast<size_t>(share)]; }
  // The offset at which a sender of this share continues: the end of the stored leaves.
  uint64_t NextOffset(int share) const;
  bool ShareComplete(int share) const;
  bool Complete() const;

  // Verifies the digest of the whole state and syncs the directories. DataLoss: the digest is not the announced one,
  // and the save must be abandoned. FailedPrecondition unless Complete().
  absl::StatusOr<StoredShards> Finish();

  // Removes what was written; the sink accepts nothing afterwards.
  absl::Status Abandon();

 private:
  struct OpenShare;

  ShardSink(TermHold& hold, SnapshotId id, std::vector<CheckpointTensor> layout, SharePlan plan);

  absl::Status Prepare(absl::Span<const FrozenSource> sources);
  absl::Status CheckRoom() const;
  void TakeOverFrozen(absl::Span<const FrozenSource> sources);
  absl::Status Broken() const;
  // Keeps the first unrecoverable error, which all later calls return.
  absl::Status Break(absl::Status error);

  TermHold& hold_;
  Storage& storage_;
  const SnapshotId id_;
  const std::vector<CheckpointTensor> layout_;
  const SharePlan plan_;
  std::string directory_;
  std::vector<std::unique_ptr<OpenShare>> shares_;

  mutable Mutex mutex_;
  absl::Status broken_ GUARDED_BY(mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_SHARD_SINK_H_
