#include "common/checkpoint_format/manifest.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/digest/sha256.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep {
namespace {

const absl::string_view kZeros = "0000000000000000000000000000000000000000000000000000000000000000";

bool IsHexDigest(absl::string_view text) {
  return text.size() == kZeros.size() &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); });
}

absl::Status InvalidManifest(absl::string_view file, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(file, " is not a valid manifest: ", what));
}

// Whether the leaves that the manifest lists make the digest of their tensor.
bool LeavesHold(const TensorSpec& spec, const ManifestTensor& tensor) {
  LeafDigests leaves;
  for (const std::string& leaf : tensor.leaves()) {
    const std::optional<Sha256Digest> digest = ParseDigest(leaf);
    if (!digest.has_value()) return false;
    leaves.push_back(*digest);
  }
  const uint64_t bytes = tensor.end() - tensor.begin();
  return leaves.size() == LeafCount(bytes) && ToHex(TensorDigestOf(spec, leaves)) == tensor.sha256();
}

absl::Status CheckFiles(const Manifest& manifest, absl::string_view file, std::set<absl::string_view>& paths) {
  absl::string_view before;
  for (const ManifestFile& entry : manifest.files()) {
    if (!CheckStoragePath(entry.path()).ok() || entry.path() <= before) {
      return InvalidManifest(
          file, absl::StrCat("the file '", absl::CHexEscape(entry.path()), "' is out of order or no path"));
    }
    if (entry.header_size() > entry.size())
      return InvalidManifest(file, absl::StrCat(entry.path(), " ends in its header"));
    if (!IsHexDigest(entry.sha256())) return InvalidManifest(file, absl::StrCat(entry.path(), " has no digest"));
    before = entry.path();
    paths.insert(before);
  }
  return absl::OkStatus();
}

absl::Status CheckTensors(const Manifest& manifest, absl::string_view file, const std::set<absl::string_view>& paths) {
  absl::string_view before;
  for (const ManifestTensor& tensor : manifest.tensors()) {
    const std::string shown = absl::StrCat("tensor '", absl::CHexEscape(tensor.name()), "' ");
    if (tensor.name() <= before) return InvalidManifest(file, shown + "is out of order or without a name");
    before = tensor.name();
    if (!IsInGroup(tensor.name(), tensor.group())) return InvalidManifest(file, shown + "has no group");
    const std::optional<DType> dtype = ParseDType(tensor.dtype());
    if (!dtype) return InvalidManifest(file, shown + "has an unknown dtype");
    const absl::StatusOr<int64_t> bytes = CheckedByteSize(*dtype, tensor.shape());
    if (!bytes.ok()) return InvalidManifest(file, shown + "has an impossible shape");
    if (tensor.end() < tensor.begin() || tensor.end() - tensor.begin() != static_cast<uint64_t>(*bytes)) {
      return InvalidManifest(file, shown + "has another size than its shape and dtype");
    }
    if (!paths.contains(tensor.file())) return InvalidManifest(file, shown + "lies in a file that is not listed");
    if (!IsHexDigest(tensor.sha256())) return InvalidManifest(file, shown + "has no digest");
    const TensorSpec spec{tensor.name(), *dtype, Shape(tensor.shape().begin(), tensor.shape().end())};
    if (manifest.format_version() >= kManifestWithLeaves && !LeavesHold(spec, tensor)) {
      return InvalidManifest(file, shown + "has leaves that do not make its digest");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<Sha256Digest> ParseDigest(const std::string& hex) {
  if (!IsHexDigest(hex)) return std::nullopt;
  const std::string raw = absl::HexStringToBytes(hex);
  Sha256Digest digest;
  std::copy(raw.begin(), raw.end(), digest.begin());
  return digest;
}

absl::StatusOr<std::string> EncodeManifest(Manifest& manifest) {
  manifest.set_format_version(kManifestFormatVersion);
  auto* files = manifest.mutable_files();
  std::sort(files->begin(), files->end(), [](const auto& a, const auto& b) { return a.path() < b.path(); });
  auto* tensors = manifest.mutable_tensors();
  std::sort(tensors->begin(), tensors->end(), [](const auto& a, const auto& b) { return a.name() < b.name(); });
  manifest.set_manifest_sha256(std::string(kZeros));
  std::string json = ToJson(manifest);
  const std::string digest = Sha256Hex(json);
  manifest.set_manifest_sha256(digest);
  const size_t place = json.rfind(std::string(kZeros));  // the last field
  json.replace(place, kZeros.size(), digest);
  LS_RETURN_IF_ERROR(ParseManifest(json, "the manifest to be written").status());
  return json;
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view json, absl::string_view file) {
  Manifest manifest;
  LS_RETURN_IF_ERROR(FromJson(json, file, &manifest));
  if (manifest.format_version() > kManifestFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(file, " has format version ", manifest.format_version(),
                                                      "; this program reads up to ", kManifestFormatVersion,
                                                      ". Use the program that wrote it, or a newer one"));
  }
  const std::string& digest = manifest.manifest_sha256();
  if (manifest.format_version() < 1 || !IsHexDigest(digest))
    return InvalidManifest(file, "format_version or manifest_sha256 is missing");
  std::string zeroed(json);
  const size_t place = zeroed.rfind(digest);
  if (place == std::string::npos) return InvalidManifest(file, "manifest_sha256 is not written as plain digits");
  zeroed.replace(place, digest.size(), std::string(kZeros));
  if (const std::string actual = Sha256Hex(zeroed); actual != digest) {
    return absl::DataLossError(absl::StrCat(file, " was changed: its digest is ", actual, ", it says ", digest));
  }
  std::set<absl::string_view> paths;
  LS_RETURN_IF_ERROR(CheckFiles(manifest, file, paths));
  LS_RETURN_IF_ERROR(CheckTensors(manifest, file, paths));
  if (manifest.step() < 0 || manifest.term() < 1 || manifest.position() < 0)
    return InvalidManifest(file, "step, term or position is impossible");
  LS_ASSIGN_OR_RETURN(const std::string state, StateDigestOf(manifest));
  if (state != manifest.state_digest()) {
    return InvalidManifest(
        file, absl::StrCat("its tensors make the state digest ", state, ", it says ", manifest.state_digest()));
  }
  return manifest;
}

std::vector<CheckpointTensor> ManifestLayout(const Manifest& manifest) {
  std::vector<CheckpointTensor> layout;
  for (const ManifestTensor& tensor : manifest.tensors()) {
    layout.push_back({tensor.group(),
                      {tensor.name(), ParseDType(tensor.dtype()).value_or(DType::kU8),
                       Shape(tensor.shape().begin(), tensor.shape().end())}});
  }
  return layout;
}

absl::StatusOr<std::string> StateDigestOf(const Manifest& manifest) {
  StateDigestBuilder state;
  for (const ManifestTensor& tensor : manifest.tensors()) {
    const std::optional<Sha256Digest> digest = ParseDigest(tensor.sha256());
    if (!digest.has_value()) return absl::DataLossError(absl::StrCat("tensor '", tensor.name(), "' has no digest"));
    LS_RETURN_IF_ERROR(state.Add(tensor.name(), *digest));
  }
  return state.Hex();
}

absl::Status AddLeaves(const StateDigests& digests, Manifest& manifest) {
  if (static_cast<int>(digests.tensors.size()) != manifest.tensors_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("digests of ", digests.tensors.size(), " tensors for a manifest of ", manifest.tensors_size()));
  }
  for (int i = 0; i < manifest.tensors_size(); ++i) {
    ManifestTensor& tensor = *manifest.mutable_tensors(i);
    const TensorDigests& of = digests.tensors[static_cast<size_t>(i)];
    tensor.set_sha256(ToHex(of.digest));
    tensor.clear_leaves();
    for (const Sha256Digest& leaf : of.leaves) tensor.add_leaves(ToHex(leaf));
  }
  manifest.set_flat_state_digest(manifest.state_digest());
  manifest.set_state_digest(digests.state);
  manifest.set_format_version(kManifestFormatVersion);
  return absl::OkStatus();
}

Evaluations ToProto(const EvaluationLedger& ledger) {
  Evaluations evaluations;
  evaluations.set_rule(ledger.rule);
  evaluations.set_step(static_cast<int64_t>(ledger.step));
  evaluations.set_value(ledger.value);
  evaluations.set_best_step(static_cast<int64_t>(ledger.best_step));
  evaluations.set_best_value(ledger.best_value);
  evaluations.set_reference(ledger.reference);
  evaluations.set_stale(static_cast<int64_t>(ledger.stale));
  evaluations.set_rate_cuts(static_cast<int64_t>(ledger.rate_cuts));
  evaluations.set_rate_reference(ledger.rate_reference);
  evaluations.set_rate_stale(static_cast<int64_t>(ledger.rate_stale));
  evaluations.set_rate_cooldown(static_cast<int64_t>(ledger.rate_cooldown));
  return evaluations;
}

EvaluationLedger FromProto(const Evaluations& evaluations) {
  EvaluationLedger ledger;
  ledger.rule = evaluations.rule();
  ledger.step = static_cast<uint64_t>(evaluations.step());
  ledger.value = evaluations.value();
  ledger.best_step = static_cast<uint64_t>(evaluations.best_step());
  ledger.best_value = evaluations.best_value();
  ledger.reference = evaluations.reference();
  ledger.stale = static_cast<uint64_t>(evaluations.stale());
  ledger.rate_cuts = static_cast<uint64_t>(evaluations.rate_cuts());
  ledger.rate_reference = evaluations.rate_reference();
  ledger.rate_stale = static_cast<uint64_t>(evaluations.rate_stale());
  ledger.rate_cooldown = static_cast<uint64_t>(evaluations.rate_cooldown());
  return ledger;
}

}  // namespace lockstep
