// lockstep_account GPU WORKERS JOB [KEY=VALUE…]: what `lockstep profile --model-of` starts.
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "chief/server/job_setup.h"
#include "common/graph/serialize.h"
#include "common/log/escape.h"
#include "common/log/log.h"
#include "common/status/exit_code.h"
#include "worker/account/account_text.h"
#include "worker/account/machines.h"
#include "worker/device/choice/evaluate_node.h"
#include "worker/session/inspect_data.h"

namespace lockstep::cli {
namespace {

int EndWith(const absl::Status& status, int exit_code) {
  WriteLastLine(status, exit_code);
  return exit_code;
}

int PrintAccount(const std::string& gpu, int workers, const chief::ChiefOptions& options) {
  const absl::StatusOr<worker::Machine> machine = worker::FindMachine(gpu);
  if (!machine.ok()) return EndWith(machine.status(), kExitUsage);
  int exit_code = kExitDone;
  const absl::StatusOr<chief::JobSetup> setup = chief::SetUpJob(options, exit_code);
  if (!setup.ok()) return EndWith(setup.status(), exit_code);
  const absl::StatusOr<MetaGraph> metagraph = ParseMetaGraph(setup->metagraph_bytes);
  if (!metagraph.ok()) return EndWith(metagraph.status(), kExitBadJob);
  const absl::StatusOr<worker::WrittenStep> step = worker::WriteStep(*metagraph, setup->job, workers);
  if (!step.ok()) {
    return EndWith(step.status(), workers > setup->job.train().logical_shards() ? kExitUsage : kExitBadJob);
  }
  std::cout << "job '" << EscapeControls(setup->job.name())
            << "': " << worker::AccountText(*step, *machine, worker::MakeAccount(*step, *machine));
  return kExitDone;
}

}  // namespace
}  // namespace lockstep::cli

int main(int count, char** words) {
  using lockstep::chief::ChiefOptions;
  lockstep::InitLog({.part = "lockstep"});
  int workers = 0;
  if (count < 4 || !absl::SimpleAtoi(words[2], &workers)) {
    return lockstep::cli::EndWith(absl::InvalidArgumentError("is started by `lockstep profile --model-of`"),
                                  lockstep::kExitUsage);
  }
  ChiefOptions options{.job_path = words[3], .overrides = {words + 4, words + count}};
  options.inspect_data = lockstep::worker::InspectData;
  options.evaluate_node = lockstep::device::EvaluateNode;
  return lockstep::cli::PrintAccount(words[1], workers, options);
}
