// Test helpers that turn a checkpoint into one of manifest format version 1, as earlier programs wrote it.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_FORMAT_1_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_FORMAT_1_H_

#include <regex>
#include <string>

#include "absl/status/status.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/term/job_log.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/digest/sha256.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {

// The bytes of `manifest` in format version 1.
inline std::string EncodeFormat1(Manifest manifest) {
  const std::string zeros(64, '0');
  manifest.set_format_version(1);
  manifest.set_manifest_sha256(zeros);
  // Without the fields that came later.
  std::string json = std::regex_replace(
      ToJson(manifest), std::regex(R"re(\n *"(leaves|epoch|written_ms|members|flat_state_digest)": [^\n]*)re"), "");
  json = std::regex_replace(json, std::regex(R"re(("sha256": "[0-9a-f]*"),(\n *\}))re"), "$1$2");
  json.replace(json.rfind(zeros), zeros.size(), Sha256Hex(json));
  return json;
}

// Replaces the manifest of the checkpoint at `path` by one of version 1, also in the log. Returns its new state digest.
inline absl::StatusOr<std::string> MakeFormat1(Storage& storage, JobLog& log, const std::string& path) {
  LS_ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(storage, path));
  Manifest manifest = reader.manifest();
  for (int i = 0; i < manifest.tensors_size(); ++i) {
    ManifestTensor& tensor = *manifest.mutable_tensors(i);
    FlatTensorDigest digest(reader.layout()[static_cast<size_t>(i)].spec);
    LS_RETURN_IF_ERROR(reader.StreamTensor(static_cast<size_t>(i), [&](absl::string_view bytes) {
      digest.Update(bytes);
      return absl::OkStatus();
    }));
    tensor.set_sha256(ToHex(digest.Finish()));
    tensor.clear_leaves();
  }
  LS_ASSIGN_OR_RETURN(const std::string flat, StateDigestOf(manifest));
  manifest.set_state_digest(flat);
  manifest.clear_members();
  LS_RETURN_IF_ERROR(
      ReplaceFile(storage, "format-1", JoinPath(path, layout::kManifest), EncodeFormat1(manifest), Access::kShared));
  LS_RETURN_IF_ERROR(log.Change("a checkpoint of an earlier program", [&](CommitRecord& record) {
    for (LiveCheckpoint& live : *record.mutable_live()) {
      if (live.prefix() == path) live.set_state_digest(flat);
    }
  }));
  return flat;
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_FORMAT_1_H_
