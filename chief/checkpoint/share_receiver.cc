#include "chief/checkpoint/share_receiver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {

absl::StatusOr<ShareReceiver> ShareReceiver::Begin(std::shared_ptr<ShardSink> sink, uint32_t share,
                                                   absl::string_view tensor_digests, absl::string_view leaf_digests) {
  if (share >= static_cast<uint32_t>(sink->shares())) {
    return absl::InvalidArgumentError(absl::StrCat("there is no share ", share, " of ", sink->shares()));
  }
  const Share& planned = sink->share(static_cast<int>(share));
  LS_ASSIGN_OR_RETURN(ShareProof proof, ParseProof(sink->layout(), planned, tensor_digests, leaf_digests));
  LS_RETURN_IF_ERROR(CheckProof(proof, sink->layout(), planned, sink->id().digest));
  return ShareReceiver(std::move(sink), static_cast<int>(share), std::move(proof));
}

void ShareReceiver::SkipEmptyPieces() {
  while (!complete() && piece().bytes == 0) ++piece_;
}

absl::Status ShareReceiver::Add(absl::string_view bytes, uint32_t crc32c) {
  if (Crc32c(bytes) != crc32c) {
    return absl::AbortedError("a chunk was damaged on its way: its CRC-32C differs");
  }
  while (!bytes.empty()) {
    if (complete()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the share has ", share().bytes, " bytes; at least ", bytes.size(), " more came"));
    }
    const uint64_t size = LeafSize(piece().bytes, leaf_);
    const absl::string_view part = bytes.substr(0, size - pending_.size());
    bytes.remove_prefix(part.size());
    if (pending_.empty() && part.size() == size) {
      LS_RETURN_IF_ERROR(TakeLeaf(part));
      continue;
    }
    if (pending_.empty()) pending_.reserve(size);
    absl::StrAppend(&pending_, part);
    if (pending_.size() < size) return absl::OkStatus();
    LS_RETURN_IF_ERROR(TakeLeaf(pending_));
    pending_.clear();
  }
  return absl::OkStatus();
}

absl::Status ShareReceiver::TakeLeaf(absl::string_view bytes) {
  // What another sender brought is not written again, so it need not be right here.
  if (LeafBegin() + bytes.size() > sink_->NextOffset(share_)) {
    const Sha256Digest digest = Sha256Of(bytes);
    if (digest != proof_.leaves[piece_][leaf_]) {
      const uint64_t begin = leaf_ * kLeafBytes;
      return absl::DataLossError(absl::StrCat(
          "of tensor '", sink_->layout()[static_cast<size_t>(piece().tensor)].spec.name, "' bytes ", begin, " to ",
          begin + bytes.size(), " are not those that were announced: ", "the sender's memory holds other ones"));
    }
    LS_RETURN_IF_ERROR(sink_->AcceptLeaf(share_, LeafBegin(), bytes, digest));
  }
  if (++leaf_ < LeafCount(piece().bytes)) return absl::OkStatus();
  leaf_ = 0;
  ++piece_;
  SkipEmptyPieces();
  return absl::OkStatus();
}

absl::Status ShareReceiver::End() const {
  if (complete()) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("the share ended at byte ", LeafBegin() + pending_.size(), " of ", share().bytes));
}

}  // namespace lockstep::chief
