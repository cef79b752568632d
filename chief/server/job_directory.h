// Checks of a job's directory: what a chief needs of it and what stands in its way. Used by the chief that takes the
// directory over, and by commands that only look.
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

// OK if this user can create and write `directory`. Creates nothing.
absl::Status CheckWritable(const std::string& directory);

// Whether `directory` holds a checkpoint. True also if the file system reports any error other than a missing path,
// which may hide one.
bool MayHoldCheckpoint(const std::string& directory);

// ResourceExhausted unless a first checkpoint with a state of `state` bytes fits onto the file system of `directory`.
absl::Status CheckRoom(const std::string& directory, int64_t state);

// The exit code for an error in reading the job's token.
ExitCode TokenExitCode(const absl::Status& status);

// OK when `job` may go on from `newest`; FailedPrecondition names what changed. REQUIRES: newest is of `storage`.
absl::Status CheckResume(const PreparedJob& job, const Storage& storage, const CheckpointReader& newest);

// The settings that changed since `newest`, if the job may go on with them.
absl::StatusOr<JobDifference> DifferenceTo(const JobSpec& job, const Storage& storage, const CheckpointReader& newest);

// Adds to `findings` whatever would keep a chief from taking `directory` over or from continuing in it, in the order in
// which the chief would meet it. Changes nothing. `job`: as far as it could be read. `prepared`: null if it could not
// be prepared.
void LookAtDirectory(const JobReading& job, const PreparedJob* prepared, const std::string& directory,
                     Findings& findings);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_DIRECTORY_H_
