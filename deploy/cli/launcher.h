// What a launcher of other systems says of the process that it started, by variables of the environment: TF_CONFIG
// (TensorFlow, Kubeflow's TFJob), and MASTER_ADDR with RANK (torchrun, Kubeflow's PyTorchJob).
//
// Threading: immutable (a pure function of its argument).
#ifndef LOCKSTEP_DEPLOY_CLI_LAUNCHER_H_
#define LOCKSTEP_DEPLOY_CLI_LAUNCHER_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace lockstep::cli {

struct LaunchedTask {
  std::string by;                 // the variable that says so
  std::string chief;              // HOST:PORT where the chief is to listen; "": it does not say
  std::string name;               // "worker-1"
  std::optional<int> local_rank;  // which of its machine's tasks it is
};

// nullopt where no variable says anything. `variable` is std::getenv, or gives other values. InvalidArgument: one has a
// value that is none.
absl::StatusOr<std::optional<LaunchedTask>> ThisLaunchedTask(const std::function<const char*(const char*)>& variable);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_LAUNCHER_H_
