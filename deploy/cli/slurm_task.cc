#include "deploy/cli/slurm_task.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lockstep::cli {

std::optional<SlurmTask> ThisSlurmTask(const std::function<const char*(const char*)>& variable) {
  const auto number = [&variable](const char* name) -> std::optional<int> {
    const char* const text = variable(name);
    int value = 0;
    if (text == nullptr || !absl::SimpleAtoi(text, &value) || value < 0) return std::nullopt;
    return value;
  };
  // A batch script and the shell of salloc have the others, but no step.
  const auto step = number("SLURM_STEP_ID");
  const auto task = number("SLURM_PROCID");
  const auto local = number("SLURM_LOCALID");
  const char* const node = variable("SLURMD_NODENAME");
  if (!step || !task || !local || node == nullptr || *node == '\0') return std::nullopt;
  return SlurmTask{.name = absl::StrCat(node, "-", *task), .local_rank = *local};
}

}  // namespace lockstep::cli
