// Adds a checkpoint from elsewhere to a job: a backup, one that was set aside, or one from a copy of the job's
// directory.
//
// Threading: thread-compatible; blocks on both storages.
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

// Verifies `checkpoint`, copies it byte by byte into the place of `hold`, and records it in the log as pinned, so that
// retention keeps it. If the job has a damaged checkpoint of the same step, that is set aside first, which `messages`
// report. Returns a message for people. FailedPrecondition: it belongs to another job or to a history that the job has
// left (`mark`), or the job has another state of its step. DataLoss: it is damaged. Else codes of the storages.
// `on_bytes` is called with the number of tensor bytes that were read since the last call.
absl::StatusOr<std::string> Adopt(const CheckpointReader& checkpoint, TermHold& hold, const DirectoryMark& mark,
                                  ManifestStore& manifests, std::vector<std::string>& messages,
                                  const CheckpointReader::OnBytes& on_bytes = nullptr);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_ADOPT_H_
