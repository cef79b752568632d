#include "chief/checkpoint/carry_over_manifest.h"

#include "chief/checkpoint/checkpoint_reader.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {

absl::StatusOr<Manifest> CarryOverManifest(TermHold& hold, const std::string& path) {
  LS_ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(hold.storage(), path));
  Manifest manifest = reader.manifest();
  if (manifest.format_version() >= kManifestWithLeaves) return manifest;
  LS_ASSIGN_OR_RETURN(const StateDigests digests, reader.ComputeDigests());
  LS_RETURN_IF_ERROR(AddLeaves(digests, manifest));
  LS_ASSIGN_OR_RETURN(const std::string json, EncodeManifest(manifest));
  LS_RETURN_IF_ERROR(hold.Replace(JoinPath(path, layout::kManifest), json));
  return manifest;
}

}  // namespace lockstep::chief
