// From a job file to everything that a chief knows before it touches the job's directory.
//
// Threading: thread-safe (reads files, changes nothing); blocks.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_SETUP_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_SETUP_H_

#include <string>
#include <vector>

#include "chief/core/policy.h"
#include "chief/server/chief_main.h"
#include "common/graph/metagraph.h"
#include "common/job/job.h"
#include "common/training/training_policy.h"

namespace lockstep::chief {

struct JobSetup {
  JobSpec job;
  std::string directory;
  DataFacts facts;
  MetaGraph metagraph;
  std::string metagraph_bytes;
  std::string fingerprint;
  std::map<std::string, Tensor> initial;  // of an imported model, by variable
  JobPolicy policy;                       // without its lineage, which the directory knows
};

// `exit_code` is set when it fails: 78 for the job, 65 for its data.
absl::StatusOr<JobSetup> SetUpJob(const ChiefOptions& options, int& exit_code);

// The state at step 0: what the model file holds, the rest drawn from the seed. One tensor per entry of the layout.
absl::StatusOr<std::vector<Tensor>> InitialStateOf(const JobSetup& setup);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_SETUP_H_
