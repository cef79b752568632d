// The sbatch command line of `lockstep slurm`, and sbatch's answer.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_DEPLOY_CLI_SLURM_SUBMISSION_H_
#define LOCKSTEP_DEPLOY_CLI_SLURM_SUBMISSION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::cli {

struct SlurmSubmission {
  std::string name;      // of the Slurm job
  std::string program;   // the path of lockstep on the nodes
  std::string job_path;  // the job file; empty: workers that join the job in `directory`
  std::string directory;
  std::vector<std::string> overrides;  // key=value
  int workers = 1;
  int gpus_per_worker = 0;           // 0 or 1
  std::string partition;             // empty: Slurm's default
  std::string time;                  // the limit in Slurm's syntax; empty: the partition's
  std::vector<std::string> options;  // further ones for sbatch, which override the others
};

// The command that submits the batch script at `script`. Without GPUs every worker has a node of its own, otherwise a
// GPU.
std::vector<std::string> SbatchCommand(const SlurmSubmission& submission, const std::string& script);

// Quotes the words as one line for a shell.
std::string ShellLine(const std::vector<std::string>& words);

// The job number in the output of `sbatch --parsable`. InvalidArgument: there is none.
absl::StatusOr<std::string> SubmittedJob(absl::string_view answer);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SLURM_SUBMISSION_H_
