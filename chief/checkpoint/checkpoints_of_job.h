// Where the checkpoints of a job are, for those who only read: in a directory what lies there, in a bucket what the
// newest record of the log names.
//
// Threading: thread-safe; blocks on the storage.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINTS_OF_JOB_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINTS_OF_JOB_H_

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "common/job_place/job_place.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {

// Codes of the storage; DataLoss: the newest records of a bucket's log are damaged.
inline absl::StatusOr<CheckpointPaths> CheckpointsOfJob(const JobPlace& place) {
  if (place.bucket() == nullptr) return CheckpointsOfDirectory(place.storage());
  LS_ASSIGN_OR_RETURN(const auto record, ReadNewestRecord(*place.bucket()));
  return record.has_value() ? CheckpointsOfRecord(*record) : CheckpointPaths();
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINTS_OF_JOB_H_
