#include "deploy/cli/slurm_task.h"

#include <catch2/catch.hpp>
#include <map>

namespace lockstep::cli {
namespace {

using Variables = std::map<std::string, std::string>;

const Variables kSecondOfANode = {
    {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "5"}, {"SLURM_LOCALID", "1"}, {"SLURMD_NODENAME", "gpu17"}};

std::optional<SlurmTask> TaskOf(const Variables& variables) {
  return ThisSlurmTask([&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("slurm task: a task of a step has a name and a rank on its node", "[cli]") {
  const auto task = TaskOf(kSecondOfANode);

  REQUIRE(task.has_value());
  CHECK(task->name == "gpu17-5");
  CHECK(task->local_rank == 1);
}

TEST_CASE("slurm task: a process that srun did not start is none, though its shell belongs to a job", "[cli]") {
  Variables batch = kSecondOfANode;
  batch.erase("SLURM_STEP_ID");

  CHECK_FALSE(TaskOf(batch).has_value());
  CHECK_FALSE(TaskOf({}).has_value());
}

TEST_CASE("slurm task: variables without a usable value count for nothing", "[cli]") {
  for (const auto& [name, value] :
       Variables{{"SLURM_LOCALID", "first"}, {"SLURM_PROCID", "-1"}, {"SLURMD_NODENAME", ""}}) {
    Variables odd = kSecondOfANode;
    odd[name] = value;
    INFO(name);
    CHECK_FALSE(TaskOf(odd).has_value());
  }
}

}  // namespace
}  // namespace lockstep::cli
