// Where a worker's machine has the data that the job names by other paths.
//
// Threading: immutable; all functions are thread-safe.
#ifndef LOCKSTEP_WORKER_SESSION_DATA_ROOTS_H_
#define LOCKSTEP_WORKER_SESSION_DATA_ROOTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"

namespace lockstep::worker {

// What the job has below the folder `from` lies below `to` here.
struct DataRoot {
  std::string from;
  std::string to;
};

// "FROM=TO". InvalidArgument: one of them is missing or no absolute path.
absl::StatusOr<DataRoot> ParseDataRoot(const std::string& text);

// Has the job's data read where `roots` say; of several that fit a path the longest counts.
void MoveData(const std::vector<DataRoot>& roots, JobSpec& job);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_DATA_ROOTS_H_
