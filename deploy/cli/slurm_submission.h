// What `lockstep slurm` asks sbatch for, as words, and what sbatch answers.
//
// Threading: immutable (pure functions).
#ifndef LOCKSTEP_DEPLOY_CLI_SLURM_SUBMISSION_H_
#define LOCKSTEP_DEPLOY_CLI_SLURM_SUBMISSION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::cli {

struct SlurmSubmission {
  std::string name;      // of the Slurm job
  std::string program;   // lockstep, as the nodes find it
  std::string job_path;  // the job file; empty: workers that join the job in `directory`
  std::string directory;
  std::vector<std::string> overrides;  // key=value
  int workers = 1;
  int gpus_per_worker = 0;           // 0 or 1
  std::string partition;             // empty: Slurm's default
  std::string time;                  // the limit, as Slurm writes it; empty: that of the partition
  std::vector<std::string> options;  // for sbatch; they win over the others
};

// The command that submits the batch script at `script`. Without GPUs every worker has a node, else every GPU a worker.
std::vector<std::string> SbatchCommand(const SlurmSubmission& submission, const std::string& script);

// The words as a line that a shell reads as them.
std::string ShellLine(const std::vector<std::string>& words);

// The number of the job in what `sbatch --parsable` prints. InvalidArgument when there is none.
absl::StatusOr<std::string> SubmittedJob(absl::string_view answer);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SLURM_SUBMISSION_H_
