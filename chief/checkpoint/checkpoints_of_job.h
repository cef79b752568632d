// Finds the checkpoints of a job, for readers only: in a directory all that are stored there, in a bucket those that
// the newest record of the log names. Also says which are pinned.
//
// Threading: thread-safe; blocks on the storage.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINTS_OF_JOB_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINTS_OF_JOB_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/term/job_log.h"
#include "common/job_place/job_place.h"
#include "common/status/status_macros.h"
#include "protos/commit_log.pb.h"

namespace lockstep::chief {

// The folders of the job's checkpoints. Codes of the storage; DataLoss: the newest records of a bucket's log are
// damaged.
inline absl::StatusOr<CheckpointPaths> CheckpointsOfJob(const JobPlace& place) {
  if (place.bucket() == nullptr) return CheckpointsOfDirectory(place.storage());
  LS_ASSIGN_OR_RETURN(const auto record, ReadNewestRecord(*place.bucket()));
  return record.has_value() ? CheckpointsOfRecord(*record) : CheckpointPaths();
}

// Whether the checkpoint at `path`, which could not be read, was removed meanwhile, by retention or by hand. False also
// if that cannot be determined.
inline bool WasRemoved(const JobPlace& place, const std::string& path) {
  const absl::StatusOr<CheckpointPaths> now = CheckpointsOfJob(place);
  return now.ok() && std::find(now->begin(), now->end(), path) == now->end();
}

// The steps of the checkpoints that the newest record of the log pins. Codes as JobLog::Read.
inline absl::StatusOr<std::set<int64_t>> PinnedSteps(const JobPlace& place) {
  LS_ASSIGN_OR_RETURN(const std::optional<CommitRecord> record, JobLog::Of(place)->Read());
  std::set<int64_t> steps;
  if (!record.has_value()) return steps;
  for (const LiveCheckpoint& live : record->live()) {
    if (live.pinned()) steps.insert(live.step());
  }
  return steps;
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINTS_OF_JOB_H_
