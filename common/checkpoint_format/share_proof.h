// The digests that the sender of a share sends along with its bytes. They hash to the state digest that the members of
// the generation announced, so the receiver checks every leaf of 4 MiB as it arrives, and can attribute a wrong byte to
// its sender, tensor and range.
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

// OK when the tensor digests hash to `state_digest`, and the leaf digests to those of their tensors. DataLoss says
// which do not; InvalidArgument when there are too few or too many.
absl::Status CheckProof(const ShareProof& proof, absl::Span<const CheckpointTensor> layout, const Share& share,
                        absl::string_view state_digest);

// The two lists as bytes, 32 for each digest.
std::string TensorDigestBytes(const ShareProof& proof);
std::string LeafDigestBytes(const ShareProof& proof);
// InvalidArgument when the bytes do not hold one digest per leaf of the share and one per tensor of the layout.
absl::StatusOr<ShareProof> ParseProof(absl::Span<const CheckpointTensor> layout, const Share& share,
                                      absl::string_view tensor_digests, absl::string_view leaf_digests);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SHARE_PROOF_H_
