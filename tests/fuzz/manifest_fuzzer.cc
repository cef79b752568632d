// Manifests of checkpoints. Their digest keeps most changes from going far, so the input is tried twice: as it is, and
// with the digests that it should have.
#include <google/protobuf/stubs/logging.h>

#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/proto_json.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/json_mutator.h"

// Gives every tensor as many leaves as its size asks for, and the digest that they make. False: it has no such size.
static bool GiveLeaves(lockstep::ManifestTensor& tensor) {
  const auto dtype = lockstep::ParseDType(tensor.dtype());
  const uint64_t bytes = tensor.end() - tensor.begin();
  if (!dtype.has_value() || tensor.end() < tensor.begin() || bytes > 64 * lockstep::kLeafBytes) return false;
  tensor.clear_leaves();
  const lockstep::LeafDigests leaves(lockstep::LeafCount(bytes));
  for (const lockstep::Sha256Digest& leaf : leaves) tensor.add_leaves(lockstep::ToHex(leaf));
  const lockstep::Shape shape(tensor.shape().begin(), tensor.shape().end());
  tensor.set_sha256(lockstep::ToHex(lockstep::TensorDigestOf({tensor.name(), *dtype, shape}, leaves)));
  return true;
}

const lockstep::fuzz::StructuredMutator& lockstep::fuzz::TargetMutator() {
  static const JsonMutator<Manifest> mutator;
  return mutator;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silence;
  const absl::string_view json(reinterpret_cast<const char*>(data), size);
  const auto plain = lockstep::ParseManifest(json, "manifest.json");
  LS_CHECK(plain.ok() || !plain.status().message().empty(), "a refusal says why");
  lockstep::Manifest manifest;
  if (!lockstep::FromJson(json, "manifest.json", &manifest).ok()) return 0;
  for (lockstep::ManifestTensor& tensor : *manifest.mutable_tensors()) {
    if (!GiveLeaves(tensor)) return 0;
  }
  const auto state = lockstep::StateDigestOf(manifest);
  if (state.ok()) manifest.set_state_digest(*state);
  const auto bytes = lockstep::EncodeManifest(manifest);
  if (!bytes.ok()) return 0;
  const auto again = lockstep::ParseManifest(*bytes, "manifest.json");
  LS_CHECK(again.ok(), "what was written is read");
  static_cast<void>(lockstep::ManifestLayout(*again));
  return 0;
}
