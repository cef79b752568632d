// Makes a checkpoint that lies elsewhere one of the job's again: a backup, one that was set aside, or one of a copy of
// the job's directory.
//
// Threading: as the storages; blocks.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_ADOPT_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_ADOPT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/checkpoint/manifest_store.h"
#include "chief/term/term_claim.h"
#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

// Verifies `checkpoint`, copies it byte by byte into the place of `hold`, and puts it into the log, pinned: retention
// leaves it. A damaged one of its step that the job has is set aside first, which `messages` say. Returns what came of
// it, for people. FailedPrecondition: it is of another job, of a history that the job has left (`mark`), or the job has
// another state of its step. DataLoss: it is damaged. `on_bytes` hears how many more bytes of tensors were read. Else
// codes of the storages.
absl::StatusOr<std::string> Adopt(const CheckpointReader& checkpoint, TermHold& hold, const DirectoryMark& mark,
                                  ManifestStore& manifests, std::vector<std::string>& messages,
                                  const CheckpointReader::OnBytes& on_bytes = nullptr);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_ADOPT_H_
