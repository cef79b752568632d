#include "common/checkpoint_format/share_proof.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kDigestBytes = sizeof(Sha256Digest);

void Append(absl::Span<const Sha256Digest> digests, std::string& out) {
  for (const Sha256Digest& digest : digests) out.append(digest.begin(), digest.end());
}

std::vector<Sha256Digest> Split(absl::string_view bytes) {
  std::vector<Sha256Digest> digests(bytes.size() / kDigestBytes);
  for (size_t i = 0; i < digests.size(); ++i) {
    const absl::string_view one = bytes.substr(i * kDigestBytes, kDigestBytes);
    std::copy(one.begin(), one.end(), digests[i].begin());
  }
  return digests;
}

}  // namespace

ShareProof ProofOf(const StateDigests& state, const Share& share) {
  ShareProof proof;
  for (const TensorDigests& tensor : state.tensors) proof.tensors.push_back(tensor.digest);
  for (const SharePiece& piece : share.pieces) {
    proof.leaves.push_back(state.tensors[static_cast<size_t>(piece.tensor)].leaves);
  }
  return proof;
}

absl::Status CheckProof(const ShareProof& proof, absl::Span<const CheckpointTensor> layout, const Share& share,
                        absl::string_view state_digest) {
  if (proof.tensors.size() != layout.size() || proof.leaves.size() != share.pieces.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the proof is of ", proof.tensors.size(), " tensors, ",
                                                   proof.leaves.size(), " of them in the share; expected were ",
                                                   layout.size(), " and ", share.pieces.size()));
  }
  StateDigestBuilder state;
  for (size_t i = 0; i < layout.size(); ++i) LS_RETURN_IF_ERROR(state.Add(layout[i].spec.name, proof.tensors[i]));
  if (const std::string actual = state.Hex(); actual != state_digest) {
    return absl::DataLossError(
        absl::StrCat("the tensor digests make the state digest ", actual, "; announced was ", state_digest));
  }
  for (size_t i = 0; i < share.pieces.size(); ++i) {
    const auto tensor = static_cast<size_t>(share.pieces[i].tensor);
    const TensorSpec& spec = layout[tensor].spec;
    if (proof.leaves[i].size() != LeafCount(share.pieces[i].bytes)) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", spec.name, "' has ", LeafCount(share.pieces[i].bytes),
                                                     " leaves, not ", proof.leaves[i].size()));
    }
    if (TensorDigestOf(spec, proof.leaves[i]) != proof.tensors[tensor]) {
      return absl::DataLossError(
          absl::StrCat("the leaves of tensor '", spec.name, "' do not make its digest, which was announced"));
    }
  }
  return absl::OkStatus();
}

std::string TensorDigestBytes(const ShareProof& proof) {
  std::string bytes;
  Append(proof.tensors, bytes);
  return bytes;
}

std::string LeafDigestBytes(const ShareProof& proof) {
  std::string bytes;
  for (const LeafDigests& leaves : proof.leaves) Append(leaves, bytes);
  return bytes;
}

absl::StatusOr<ShareProof> ParseProof(absl::Span<const CheckpointTensor> layout, const Share& share,
                                      absl::string_view tensor_digests, absl::string_view leaf_digests) {
  uint64_t leaves = 0;
  for (const SharePiece& piece : share.pieces) leaves += LeafCount(piece.bytes);
  if (tensor_digests.size() != layout.size() * kDigestBytes || leaf_digests.size() != leaves * kDigestBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the digests of ", layout.size(), " tensors and ", leaves,
                                                   " leaves have other sizes than ", tensor_digests.size(), " and ",
                                                   leaf_digests.size(), " bytes"));
  }
  ShareProof proof;
  proof.tensors = Split(tensor_digests);
  for (const SharePiece& piece : share.pieces) {
    const size_t bytes = LeafCount(piece.bytes) * kDigestBytes;
    proof.leaves.push_back(Split(leaf_digests.substr(0, bytes)));
    leaf_digests.remove_prefix(bytes);
  }
  return proof;
}

}  // namespace lockstep
