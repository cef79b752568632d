// manifest.json: the schema is protos/checkpoint.proto, the bytes carry their own digest (docs/formats/manifest.md).
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_MANIFEST_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_MANIFEST_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint_format/checkpoint_tensor.h"
#include "common/digest/sha256.h"
#include "common/digest/state_digest.h"
#include "common/protocol/evaluation.h"
#include "protos/checkpoint.pb.h"

namespace lockstep {

inline constexpr int kManifestFormatVersion = 2;
// From this version on tensor digests are made of leaves (common/digest/state_digest.h).
inline constexpr int kManifestWithLeaves = 2;
inline constexpr uint64_t kMaxManifestBytes = 256u << 20;

// The file's bytes; sets `manifest.manifest_sha256` to their digest.
absl::StatusOr<std::string> EncodeManifest(Manifest& manifest);

// Parses a digest of a manifest; nullopt unless it is 64 hexadecimal digits.
std::optional<Sha256Digest> ParseDigest(const std::string& hex);

// DataLoss when the bytes do not have the digest they carry, are malformed or inconsistent (names, sizes, order);
// FailedPrecondition on a newer format version. `file` is used in messages.
absl::StatusOr<Manifest> ParseManifest(absl::string_view json, absl::string_view file);

// Whether `status` says that bytes of a checkpoint are damaged, so that reading them again gives the same error.
inline bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsInvalidArgument(status) || absl::IsOutOfRange(status);
}

// The state's layout as the manifest lists it, sorted by name.
std::vector<CheckpointTensor> ManifestLayout(const Manifest& manifest);

// Computes the state digest from the manifest's tensor digests.
absl::StatusOr<std::string> StateDigestOf(const Manifest& manifest);

// Converts a manifest of format version 1 to the current version, given the digests of the state in the order of
// ManifestLayout. The old state digest moves to `flat_state_digest`, since logs and lists of earlier programs refer to
// it. InvalidArgument when the number of tensors differs.
absl::Status AddLeaves(const StateDigests& digests, Manifest& manifest);

// Whether a state digest in a log or a list refers to the state of this manifest.
inline bool IsStateOf(absl::string_view state_digest, const Manifest& manifest) {
  if (state_digest == manifest.state_digest()) return true;
  return !manifest.flat_state_digest().empty() && state_digest == manifest.flat_state_digest();
}

// Whether the job may return to this checkpoint when replicas differ, because every worker of its generation held this
// state. True also for step 0, and for manifests of earlier programs, which do not record it.
inline bool IsAudited(const Manifest& manifest) {
  return manifest.step() == 0 || !manifest.has_audited() || manifest.audited();
}

Evaluations ToProto(const EvaluationLedger& ledger);
EvaluationLedger FromProto(const Evaluations& evaluations);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_MANIFEST_H_
