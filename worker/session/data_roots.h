// Maps the data paths of a job to the paths on a worker's machine.
//
// Threading: immutable; all functions are thread-safe.
#ifndef LOCKSTEP_WORKER_SESSION_DATA_ROOTS_H_
#define LOCKSTEP_WORKER_SESSION_DATA_ROOTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"

namespace lockstep::worker {

// The job's files below the folder `from` are below `to` on this machine.
struct DataRoot {
  std::string from;
  std::string to;
};

// Parses "FROM=TO". InvalidArgument: one of them is missing or not an absolute path.
absl::StatusOr<DataRoot> ParseDataRoot(const std::string& text);

// Replaces the job's data paths by `roots`; if several roots match a path, the longest wins.
void MoveData(const std::vector<DataRoot>& roots, JobSpec& job);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_DATA_ROOTS_H_
