// Changes the checkpoints of a job that no chief runs.
//
// Threading: thread-safe; blocks on the storage.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_UPKEEP_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_UPKEEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/checkpoint/manifest_store.h"
#include "common/job_place/job_place.h"

namespace lockstep::chief {

// Makes one change (ManifestStore::Change). For that long this process is the job's chief: it claims a term and
// recovers, for which it reads the whole newest checkpoint. The log's account of how the last chief ended stays.
// `messages`: damage that was found. FailedPrecondition: a chief runs the job, or may, because its end is neither in
// the log nor known to this machine. With `force` only the lock of a directory counts; a chief that runs nevertheless
// ends with 76. NotFound: nothing was trained there, or as Change. Aborted with IsFenced: a chief started meanwhile.
// Else codes of the storage.
absl::StatusOr<std::string> ChangeWithoutChief(const JobPlace& place, CheckpointChange change, int64_t step, bool force,
                                               std::vector<std::string>& messages);

// Adds a checkpoint from elsewhere to the job (chief/checkpoint/adopt.h), in the same way; also if no checkpoint of the
// job verifies any more.
absl::StatusOr<std::string> AdoptWithoutChief(const JobPlace& place, const CheckpointReader& checkpoint, bool force,
                                              std::vector<std::string>& messages,
                                              const CheckpointReader::OnBytes& on_bytes = nullptr);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_UPKEEP_H_
