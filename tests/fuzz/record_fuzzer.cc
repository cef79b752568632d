// Records of the commit log. Their digest keeps most changes from going far, so the input is tried twice: as it is, and
// sealed anew.
#include <google/protobuf/stubs/logging.h>

#include "common/checkpoint_format/bucket_naming.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/checkpoint_format/sealed.h"
#include "common/commit_log/commit_log.h"
#include "common/storage/files.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/json_mutator.h"

const lockstep::fuzz::StructuredMutator& lockstep::fuzz::TargetMutator() {
  static const JsonMutator<CommitRecord> mutator;
  return mutator;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silence;
  const absl::string_view json(reinterpret_cast<const char*>(data), size);
  lockstep::CommitRecord plain;
  const absl::Status read = lockstep::ReadSealedJson(json, "record.json", lockstep::CommitLog::kFormat, &plain);
  LS_CHECK(read.ok() || !read.message().empty(), "a refusal says why");
  lockstep::CommitRecord record;
  if (!lockstep::FromJson(json, "record.json", &record).ok()) return 0;
  const std::string sealed = lockstep::SealJson(&record);
  lockstep::CommitRecord again;
  const absl::Status sound = lockstep::ReadSealedJson(sealed, "record.json", lockstep::CommitLog::kFormat, &again);
  LS_CHECK(sound.ok() || record.format_version() > lockstep::CommitLog::kFormat, "what was written is read");
  for (const lockstep::LiveCheckpoint& live : record.live()) {
    static_cast<void>(lockstep::layout::ParseCheckpointFolder(lockstep::BaseName(live.prefix())));
  }
  return 0;
}
