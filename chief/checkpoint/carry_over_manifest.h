// Manifests of format version 1 know a tensor by one digest of all its bytes, workers know a state by its tree
// (common/digest/state_digest.h). A checkpoint of that version gets a manifest of today's before the job goes on from
// it; every other one stays as it is, and is read.
//
// Threading: as the storage; blocks.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CARRY_OVER_MANIFEST_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CARRY_OVER_MANIFEST_H_

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/term/term_claim.h"
#include "common/digest/state_digest.h"
#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

// Whether a checkpoint has such a manifest.
bool IsFormat1(const CheckpointReader& checkpoint);

// Today's digests of its tensors, each from the same reading in which its bytes were compared with the manifest.
// DataLoss: they are damaged. Codes of the storage. REQUIRES: IsFormat1.
absl::StatusOr<StateDigests> DigestFormat1(const CheckpointReader& checkpoint);

// Replaces the manifest, atomically, by one of today's with these digests, and returns that. Codes of the storage.
absl::StatusOr<Manifest> CarryOverManifest(TermHold& hold, const CheckpointReader& checkpoint,
                                           const StateDigests& digests);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CARRY_OVER_MANIFEST_H_
