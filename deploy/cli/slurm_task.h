// Reads from Slurm's variables what a worker needs and its command line did not give.
//
// Threading: thread-safe (a pure function of its argument).
#ifndef LOCKSTEP_DEPLOY_CLI_SLURM_TASK_H_
#define LOCKSTEP_DEPLOY_CLI_SLURM_TASK_H_

#include <functional>
#include <optional>
#include <string>

namespace lockstep::cli {

struct SlurmTask {
  std::string name;    // "gpu17-3": its node, and its number in the step
  int local_rank = 0;  // its number among the tasks of its node
};

// nullopt: the process was not started by srun, or a variable has no usable value. `variable` is std::getenv, or a
// replacement in tests.
std::optional<SlurmTask> ThisSlurmTask(const std::function<const char*(const char*)>& variable);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SLURM_TASK_H_
