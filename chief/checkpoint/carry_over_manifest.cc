#include "chief/checkpoint/carry_over_manifest.h"

#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {

bool IsFormat1(const CheckpointReader& checkpoint) {
  return checkpoint.manifest().format_version() < kManifestWithLeaves;
}

absl::StatusOr<StateDigests> DigestFormat1(const CheckpointReader& checkpoint) {
  StateDigests state;
  StateDigestBuilder root;
  for (size_t i = 0; i < checkpoint.layout().size(); ++i) {
    const TensorSpec& spec = checkpoint.layout()[i].spec;
    TensorDigests& tensor = state.tensors.emplace_back();
    // It hands out leaf by leaf.
    LS_RETURN_IF_ERROR(checkpoint.StreamTensor(i, [&tensor](absl::string_view leaf) {
      tensor.leaves.push_back(Sha256Of(leaf));
      return absl::OkStatus();
    }));
    tensor.digest = TensorDigestOf(spec, tensor.leaves);
    LS_RETURN_IF_ERROR(root.Add(spec.name, tensor.digest));
  }
  state.state = root.Hex();
  return state;
}

absl::StatusOr<Manifest> CarryOverManifest(TermHold& hold, const CheckpointReader& checkpoint,
                                           const StateDigests& digests) {
  Manifest manifest = checkpoint.manifest();
  LS_RETURN_IF_ERROR(AddLeaves(digests, manifest));
  LS_ASSIGN_OR_RETURN(const std::string json, EncodeManifest(manifest));
  LS_RETURN_IF_ERROR(hold.Replace(JoinPath(checkpoint.path(), layout::kManifest), json));
  return manifest;
}

}  // namespace lockstep::chief
