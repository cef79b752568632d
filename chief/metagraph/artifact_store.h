// Stores metagraphs and kernel plans: immutable files that are named by the hash of their content, each written once.
//
// Invariants
//   * metagraphs/<fingerprint>.pb is never written twice and never changed.
//   * A loaded file hashes to its name, or loading fails with DataLoss.
// Threading: thread-compatible; every call blocks.
#ifndef LOCKSTEP_CHIEF_METAGRAPH_ARTIFACT_STORE_H_
#define LOCKSTEP_CHIEF_METAGRAPH_ARTIFACT_STORE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/term/term_claim.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

// Computes the name of an artifact from its bytes: the metagraph's fingerprint function, or Sha256Hex for plans.
using ArtifactName = std::function<absl::StatusOr<std::string>(absl::string_view bytes)>;

// Stores `bytes` as `directory`/<name>.pb ("metagraphs" or "plans") unless it exists. An existing file whose content
// does not have that name is set aside and replaced. Returns whether it was written now.
absl::StatusOr<bool> StoreArtifact(TermHold& hold, absl::string_view directory, absl::string_view name,
                                   absl::string_view bytes, const ArtifactName& name_of);

// Loads and verifies an artifact. NotFound: it does not exist. DataLoss: it is damaged.
absl::StatusOr<std::string> LoadArtifact(const Storage& storage, absl::string_view directory, absl::string_view name,
                                         const ArtifactName& name_of);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_METAGRAPH_ARTIFACT_STORE_H_
