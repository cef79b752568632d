// Converts manifests of format version 1. They have one digest of all bytes of a tensor, while workers know a state by
// its tree of digests (common/digest/state_digest.h). The checkpoint from which a job continues gets a manifest of the
// present format; all others stay as they are and remain readable.
//
// Threading: thread-compatible; blocks on the storage.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CARRY_OVER_MANIFEST_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CARRY_OVER_MANIFEST_H_

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/term/term_claim.h"
#include "common/digest/state_digest.h"
#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

// Whether a checkpoint has a manifest of version 1.
bool IsFormat1(const CheckpointReader& checkpoint);

// Computes the digests of the present format, in the same pass in which the bytes are compared with the old manifest.
// DataLoss: they are damaged. Codes of the storage. REQUIRES: IsFormat1(checkpoint).
absl::StatusOr<StateDigests> DigestFormat1(const CheckpointReader& checkpoint);

// Replaces the manifest atomically by one of the present format with these digests, and returns it. Codes of the
// storage.
absl::StatusOr<Manifest> CarryOverManifest(TermHold& hold, const CheckpointReader& checkpoint,
                                           const StateDigests& digests);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CARRY_OVER_MANIFEST_H_
