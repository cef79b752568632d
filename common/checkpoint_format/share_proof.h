// What the sender of a share gives along with its bytes: digests that make the state digest which the members of the
// generation announced. So every leaf of 4 MiB is checked as it comes in, against what they announced, and a wrong byte
// is known by its sender, its tensor and its range.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SHARE_PROOF_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SHARE_PROOF_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/checkpoint_format/checkpoint_tensor.h"
#include "common/checkpoint_format/shares.h"
#include "common/digest/sha256.h"
#include "common/digest/state_digest.h"

namespace lockstep {

struct ShareProof {
  std::vector<Sha256Digest> tensors;  // of the whole state, in the layout's order
  std::vector<LeafDigests> leaves;    // of the share's pieces, in their order
};

// REQUIRES: `share` is of a plan over the layout that `state` was digested in.
ShareProof ProofOf(const StateDigests& state, const Share& share);

// OK when the tensor digests make `state_digest`, and the leaves make those of their tensors. DataLoss says which do
// not; InvalidArgument: there are too few or too many.
absl::Status CheckProof(const ShareProof& proof, absl::Span<const CheckpointTensor> layout, const Share& share,
                        absl::string_view state_digest);

// The two lists as bytes, 32 for each digest.
std::string TensorDigestBytes(const ShareProof& proof);
std::string LeafDigestBytes(const ShareProof& proof);
// InvalidArgument: the bytes are not those of as many digests as the share has leaves and the layout tensors.
absl::StatusOr<ShareProof> ParseProof(absl::Span<const CheckpointTensor> layout, const Share& share,
                                      absl::string_view tensor_digests, absl::string_view leaf_digests);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SHARE_PROOF_H_
