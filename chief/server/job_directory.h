// What a chief needs of a job's directory, and what it would find there: shared by the chief that takes the directory
// over and by whoever only looks.
//
// Threading: thread-safe; every call blocks.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_DIRECTORY_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_DIRECTORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "common/job/findings.h"
#include "common/job/job.h"
#include "common/status/exit_code.h"
#include "common/storage/storage.h"
#include "common/training/prepare_job.h"

namespace lockstep::chief {

// OK when this user can make and write `directory`. Makes nothing.
absl::Status CheckWritable(const std::string& directory);

// Whether a checkpoint lies in `directory`. True also where the file system reports an error other than that there is
// no such path: it may hide one.
bool MayHoldCheckpoint(const std::string& directory);

// ResourceExhausted unless the first checkpoint, of `state` bytes, fits where `directory` lies or will lie.
absl::Status CheckRoom(const std::string& directory, int64_t state);

// The code for an error of the job's token.
ExitCode TokenExitCode(const absl::Status& status);

// OK when `job` may go on from `newest`; FailedPrecondition names what changed. REQUIRES: newest is of `storage`.
absl::Status CheckResume(const PreparedJob& job, const Storage& storage, const CheckpointReader& newest);

// What of the settings changed since, when it may go on.
absl::StatusOr<JobDifference> DifferenceTo(const JobSpec& job, const Storage& storage, const CheckpointReader& newest);

// Finds what would keep a chief from taking `directory` over, or from going on in it, in the order in which the chief
// would meet it. Changes nothing. `job` is as far as it could be read, `prepared` null when it could not be prepared.
void LookAtDirectory(const JobReading& job, const PreparedJob* prepared, const std::string& directory,
                     Findings& findings);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_DIRECTORY_H_
