// Turns a job file into everything that a chief knows before it touches the job's directory.
//
// Threading: thread-safe (reads files, changes nothing); blocks.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_SETUP_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_SETUP_H_

#include <optional>
#include <string>
#include <vector>

#include "chief/core/policy.h"
#include "chief/server/chief_main.h"
#include "chief/warm_start/warm_start.h"
#include "common/training/prepare_job.h"

namespace lockstep::chief {

struct JobSetup : PreparedJob {
  std::string directory;
  JobPolicy policy;    // without the lineage, which is read from the directory
  std::string listen;  // the address at which the chief listens; empty: none
};

// Reads and prepares the job. Logs warnings, and all findings beyond the returned one. If it fails, `exit_code` is 78
// (bad job) or 65 (bad data).
absl::StatusOr<JobSetup> SetUpJob(const ChiefOptions& options, int& exit_code);

struct InitialState {
  std::vector<Tensor> tensors;             // one per entry of the layout
  std::optional<WarmStartReport> trained;  // set if `model.from` was used
};

// The state at step 0: values from the model file, the rest drawn from the seed, and both overwritten by the values
// that `model.from` names. Sets `exit_code` if it fails.
absl::StatusOr<InitialState> InitialStateOf(const JobSetup& setup, int& exit_code);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_SETUP_H_
