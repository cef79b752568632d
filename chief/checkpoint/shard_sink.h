// Takes in the shares of one save as they stream in and lays them down as safetensors files under the staging
// directory. Headers are known before the first byte arrives, so every file is written front to back, once.
//
//   1 open ──AcceptLeaf…──▶ 2 complete (every share's last byte stored and synced) ──Finish──▶ 3 stored
//
// Invariants
//   * Shares are accepted by (lineage, step, digest of the whole state), whatever the generation or the sender (rule
//   19):
//     bits are bits. A share can be continued by another sender where the last one stopped.
//   * Bytes are written by whole leaves (common/digest/state_digest.h), each digested and compared before
//     (share_receiver.h): what one sender brings wrong is not in the way of the next one.
//   * Finish succeeds only if the digests of the bytes on their way to disk make the announced one (rule 20).
// Threading: AcceptLeaf and the questions about a share are thread-safe, and shares are taken in side by side: one
// sender's bytes are digested while another's are written. Finish and Abandon may come while senders are still at work.
// Every call blocks on the storage.
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

// A checkpoint whose frozen tensors a save may take over. REQUIRES: its content was verified, or written by this chief.
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
  // complete from the beginning where the storage can give its files of one of `sources`, newest first, a second name:
  // of two copies on a disk in turn, so that no damage to one file is a damage to every checkpoint. Refuses with
  // ResourceExhausted when the disk has not enough free bytes for the rest.
  static absl::StatusOr<std::unique_ptr<ShardSink>> Open(TermHold& hold, SnapshotId id,
                                                         std::vector<CheckpointTensor> layout, int shares,
                                                         absl::Span<const FrozenSource> sources = {});
  ~ShardSink();

  // Takes the leaf that begins at `offset` of a share's stream; `digest` is that of `bytes`. A leaf that was taken
  // before is skipped. Codes: InvalidArgument (no such share, no leaf of it), OutOfRange (a gap: continue at
  // NextOffset), else of the storage; after one of those only Abandon helps.
  absl::Status AcceptLeaf(int share, uint64_t offset, absl::string_view bytes, const Sha256Digest& digest);

  int shares() const { return static_cast<int>(shares_.size()); }
  const SnapshotId& id() const { return id_; }
  const std::vector<CheckpointTensor>& layout() const { return layout_; }
  // REQUIRES, of this and what follows: 0 <= share < shares().
  const Share& share(int share) const { return plan_.shares[static_cast<size_t>(share)]; }
  // Where a sender of this share continues: the end of the leaves that are there.
  uint64_t NextOffset(int share) const;
  bool ShareComplete(int share) const;
  bool Complete() const;

  // Checks the whole state's digest and syncs the directories. DataLoss when the digest differs from the announced one:
  // the save is to be abandoned. FailedPrecondition unless Complete().
  absl::StatusOr<StoredShards> Finish();

  // Removes what was written. The sink accepts nothing afterwards.
  absl::Status Abandon();

 private:
  struct OpenShare;

  ShardSink(TermHold& hold, SnapshotId id, std::vector<CheckpointTensor> layout, SharePlan plan);

  absl::Status Prepare(absl::Span<const FrozenSource> sources);
  absl::Status CheckRoom() const;
  void TakeOverFrozen(absl::Span<const FrozenSource> sources);
  absl::Status Broken() const;
  // The first error that cannot be mended is kept and returned ever after.
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
