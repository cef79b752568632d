#include "deploy/cli/check_storage.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/digest/random_secret.h"
#include "common/object_store/s3_object_store.h"
#include "common/object_store/s3_url.h"
#include "common/object_store/storage_probe.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/local/local_storage.h"

namespace lockstep::cli {
namespace {

absl::StatusOr<std::vector<Proof>> Probe(const std::string& place, const std::string& name) {
  LS_RETURN_IF_ERROR(CheckPlace(place));
  if (IsS3Url(place)) {
    LS_ASSIGN_OR_RETURN(const auto store, S3ObjectStore::Open(place, ProcessEnvironment()));
    return ProbeObjectStore(*store, name);
  }
  std::error_code error;
  const bool was_there = std::filesystem::exists(place, error);
  LS_ASSIGN_OR_RETURN(const auto storage, LocalStorage::Create(place));
  std::vector<Proof> proofs = ProbeDirectory(*storage, name);
  if (!was_there) std::filesystem::remove(place, error);  // only when it is empty
  return proofs;
}

}  // namespace

void CheckStorage(const std::string& place, Findings& findings) {
  const absl::StatusOr<std::string> secret = RandomSecretHex(8);
  if (!secret.ok()) return findings.Error("storage", secret.status(), kExitBug);
  const absl::StatusOr<std::vector<Proof>> proofs = Probe(place, absl::StrCat("check-", *secret));
  if (!proofs.ok()) return findings.Error("storage", proofs.status(), StorageExitCode(proofs.status()));
  for (const Proof& proof : *proofs) {
    const std::string took = absl::StrFormat("%.0f ms: ", absl::ToDoubleMilliseconds(proof.took));
    if (proof.status.ok()) {
      findings.Ok(proof.property, took + proof.found);
    } else {
      findings.Error(proof.property, absl::Status(proof.status.code(), took + std::string(proof.status.message())),
                     StorageExitCode(proof.status));
    }
  }
  if (!findings.failed()) findings.Ok("storage", absl::StrCat("jobs are safe in ", place));
}

}  // namespace lockstep::cli
