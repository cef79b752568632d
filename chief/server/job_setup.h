// From a job file to everything that a chief knows before it touches the job's directory.
//
// Threading: thread-safe (reads files, changes nothing); blocks.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_SETUP_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_SETUP_H_

#include <string>
#include <vector>

#include "chief/core/policy.h"
#include "chief/server/chief_main.h"
#include "common/training/prepare_job.h"

namespace lockstep::chief {

struct JobSetup : PreparedJob {
  std::string directory;
  JobPolicy policy;  // without its lineage, which the directory knows
};

// Logs what else is found when several things are wrong, and warnings. `exit_code` is set when it fails: 78 for the
// job, 65 for its data.
absl::StatusOr<JobSetup> SetUpJob(const ChiefOptions& options, int& exit_code);

// The state at step 0: what the model file holds, the rest drawn from the seed. One tensor per entry of the layout.
absl::StatusOr<std::vector<Tensor>> InitialStateOf(const JobSetup& setup);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_SETUP_H_
