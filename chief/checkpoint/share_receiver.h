// The stream of one sender of a share, on its way into a save (shard_sink.h). Puts it together leaf by leaf and
// compares each leaf with what the members announced, before it is written: a wrong byte is blamed on this sender, its
// tensor and its range, and another holder continues where the last right leaf ended.
//
// Threading: thread-compatible. Add blocks on the storage. Holds up to 4 MiB.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_SHARE_RECEIVER_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_SHARE_RECEIVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/checkpoint/shard_sink.h"
#include "common/checkpoint_format/share_proof.h"

namespace lockstep::chief {

class ShareReceiver {
 public:
  // `tensor_digests` and `leaf_digests` as the sender gave them (ShareProof). InvalidArgument: no such share, or not as
  // many digests as it needs. DataLoss: they do not make the digest that was announced.
  static absl::StatusOr<ShareReceiver> Begin(std::shared_ptr<ShardSink> sink, uint32_t share,
                                             absl::string_view tensor_digests, absl::string_view leaf_digests);

  // The next bytes of the share's stream, which begins at its first byte whatever is there already. DataLoss: a
  // leaf is another one than was announced, so the sender's memory is wrong. Aborted: `crc32c` is not theirs, so they
  // are to be sent again. InvalidArgument: they go beyond the end. Else codes of
  // ShardSink::AcceptLeaf.
  absl::Status Add(absl::string_view bytes, uint32_t crc32c);

  // The stream has ended. Aborted: too early.
  absl::Status End() const;

 private:
  ShareReceiver(std::shared_ptr<ShardSink> sink, int share, ShareProof proof)
      : sink_(std::move(sink)), share_(share), proof_(std::move(proof)) {
    SkipEmptyPieces();
  }

  const Share& share() const { return sink_->share(share_); }
  bool complete() const { return piece_ == share().pieces.size(); }
  // REQUIRES, of these: !complete().
  const SharePiece& piece() const { return share().pieces[piece_]; }
  uint64_t LeafBegin() const { return piece().begin + leaf_ * kLeafBytes; }
  absl::Status TakeLeaf(absl::string_view bytes);
  void SkipEmptyPieces();

  std::shared_ptr<ShardSink> sink_;
  int share_;
  ShareProof proof_;
  size_t piece_ = 0;     // of the leaf that comes next
  size_t leaf_ = 0;      // in its piece
  std::string pending_;  // of this leaf
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_SHARE_RECEIVER_H_
