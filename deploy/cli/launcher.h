// Reads what other launchers tell a process by environment variables: TF_CONFIG (TensorFlow, Kubeflow's TFJob), and
// MASTER_ADDR with RANK (torchrun, Kubeflow's PyTorchJob).
//
// Threading: thread-safe (a pure function of its argument).
#ifndef LOCKSTEP_DEPLOY_CLI_LAUNCHER_H_
#define LOCKSTEP_DEPLOY_CLI_LAUNCHER_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace lockstep::cli {

struct LaunchedTask {
  std::string by;                 // the variable that was used
  std::string chief;              // HOST:PORT at which the chief must listen; "": not given
  std::string name;               // "worker-1"
  std::optional<int> local_rank;  // its number among the tasks of its machine
};

// nullopt: none of the variables is set. `variable` is std::getenv, or a replacement in tests. InvalidArgument: a
// variable has an invalid value.
absl::StatusOr<std::optional<LaunchedTask>> ThisLaunchedTask(const std::function<const char*(const char*)>& variable);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_LAUNCHER_H_
