// What Slurm says of the task that this process is: values that a worker needs and nobody gave on its command line.
//
// Threading: immutable (a pure function of its argument).
#ifndef LOCKSTEP_DEPLOY_CLI_SLURM_TASK_H_
#define LOCKSTEP_DEPLOY_CLI_SLURM_TASK_H_

#include <functional>
#include <optional>
#include <string>

namespace lockstep::cli {

struct SlurmTask {
  std::string name;    // "gpu17-3": its node, and its number in the step
  int local_rank = 0;  // which of its node's tasks it is
};

// nullopt where no srun started this process, or a variable has no usable value. `variable` is std::getenv, or gives
// other values.
std::optional<SlurmTask> ThisSlurmTask(const std::function<const char*(const char*)>& variable);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SLURM_TASK_H_
