// Manifests of format version 1 know a tensor by one digest of all its bytes, workers know a state by its tree
// (common/digest/state_digest.h). A checkpoint of that version gets a manifest of today's before the job goes on from
// it; every other one stays as it is, and is read.
//
// Threading: as the storage; blocks.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CARRY_OVER_MANIFEST_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CARRY_OVER_MANIFEST_H_

#include <string>

#include "absl/status/statusor.h"
#include "chief/term/term_claim.h"
#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

// The manifest of the checkpoint at `path`, which was verified. One of an older format is replaced first, atomically,
// for which every byte of the checkpoint is read once more. Codes of the storage.
absl::StatusOr<Manifest> CarryOverManifest(TermHold& hold, const std::string& path);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CARRY_OVER_MANIFEST_H_
