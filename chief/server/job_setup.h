// From a job file to everything that a chief knows before it touches the job's directory.
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
  JobPolicy policy;    // without its lineage, which the directory knows
  std::string listen;  // where the chief is to listen; empty: nowhere
};

// Logs what else is found when several things are wrong, and warnings. `exit_code` is set when it fails: 78 for the
// job, 65 for its data.
absl::StatusOr<JobSetup> SetUpJob(const ChiefOptions& options, int& exit_code);

struct InitialState {
  std::vector<Tensor> tensors;             // one per entry of the layout
  std::optional<WarmStartReport> trained;  // of `model.from`
};

// The state at step 0: what the model file holds, the rest drawn from the seed, and over both what `model.from` names.
// `exit_code` is set when it fails.
absl::StatusOr<InitialState> InitialStateOf(const JobSetup& setup, int& exit_code);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_SETUP_H_
