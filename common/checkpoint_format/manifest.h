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

// A digest as a manifest has it; nullopt: it is none of 64 hexadecimal digits.
std::optional<Sha256Digest> ParseDigest(const std::string& hex);

// DataLoss when the bytes do not have the digest they carry, are malformed or inconsistent (names, sizes, order);
// FailedPrecondition on a newer format version. `file` is used in messages.
absl::StatusOr<Manifest> ParseManifest(absl::string_view json, absl::string_view file);

// The state's layout as the manifest lists it, sorted by name.
std::vector<CheckpointTensor> ManifestLayout(const Manifest& manifest);

// The state digest that the manifest's tensor digests make.
absl::StatusOr<std::string> StateDigestOf(const Manifest& manifest);

// Makes a manifest of format version 1 one of today's, given the digests of the state in the order of ManifestLayout.
// It keeps the state digest that it had (`flat_state_digest`), by which logs and lists of earlier programs know it.
// InvalidArgument: they are not of as many tensors.
absl::Status AddLeaves(const StateDigests& digests, Manifest& manifest);

// Whether a log or a list that gives this state digest means the state of this manifest.
inline bool IsStateOf(absl::string_view state_digest, const Manifest& manifest) {
  if (state_digest == manifest.state_digest()) return true;
  return !manifest.flat_state_digest().empty() && state_digest == manifest.flat_state_digest();
}

// Whether the job may go back to it when replicas differ: every worker of its generation held this state. Step 0
// counts, and so does a manifest of an earlier program, which says nothing of it.
inline bool IsAudited(const Manifest& manifest) {
  return manifest.step() == 0 || !manifest.has_audited() || manifest.audited();
}

Evaluations ToProto(const EvaluationLedger& ledger);
EvaluationLedger FromProto(const Evaluations& evaluations);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_MANIFEST_H_
