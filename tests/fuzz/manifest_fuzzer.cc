// Manifests of checkpoints. Their digest keeps most changes from going far, so the input is tried twice: as it is, and
// with the digest that it should have.
#include <google/protobuf/stubs/logging.h>

#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/proto_json.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silence;
  const absl::string_view json(reinterpret_cast<const char*>(data), size);
  const auto plain = lockstep::ParseManifest(json, "manifest.json");
  LS_CHECK(plain.ok() || !plain.status().message().empty(), "a refusal says why");
  lockstep::Manifest manifest;
  if (!lockstep::FromJson(json, "manifest.json", &manifest).ok()) return 0;
  const auto state = lockstep::StateDigestOf(manifest);
  if (state.ok()) manifest.set_state_digest(*state);
  const auto bytes = lockstep::EncodeManifest(manifest);
  if (!bytes.ok()) return 0;
  const auto again = lockstep::ParseManifest(*bytes, "manifest.json");
  LS_CHECK(again.ok(), "what was written is read");
  static_cast<void>(lockstep::ManifestLayout(*again));
  return 0;
}
