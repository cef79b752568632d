// Receives one sender's stream of a share of a save (shard_sink.h). Assembles leaves and compares each with the
// announced digest before it is written. So a wrong byte is attributed to this sender, a tensor and a range, and
// another holder continues behind the last right leaf.
//
// Threading: thread-compatible. Add blocks on the storage. Uses up to 4 MiB of memory.
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
  // `tensor_digests` and `leaf_digests`: as sent (ShareProof). InvalidArgument: no such share, or a wrong number of
  // digests. DataLoss: they do not combine to the announced digest.
  static absl::StatusOr<ShareReceiver> Begin(std::shared_ptr<ShardSink> sink, uint32_t share,
                                             absl::string_view tensor_digests, absl::string_view leaf_digests);

  // Takes the next bytes of the share's stream, which begins at its first byte, whatever is stored already. DataLoss: a
  // leaf is not the announced one, so the sender's memory is wrong. Aborted: `crc32c` does not match `bytes`, so they
  // must be sent again. InvalidArgument: they go beyond the end. Else codes of ShardSink::AcceptLeaf.
  absl::Status Add(absl::string_view bytes, uint32_t crc32c);

  // The stream has ended. Aborted: the share is not complete.
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
  size_t piece_ = 0;     // the piece of the next leaf
  size_t leaf_ = 0;      // in its piece
  std::string pending_;  // the received bytes of the next leaf
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_SHARE_RECEIVER_H_
