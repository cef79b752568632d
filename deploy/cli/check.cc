// `lockstep check`: everything of a job that can be known to fail before machines are spent on it.
#include <algorithm>
#include <iostream>
#include <memory>

#include "absl/strings/str_format.h"
#include "common/job/findings.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "deploy/cli/check_job.h"
#include "deploy/cli/check_storage.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/machine.h"
#include "deploy/cli/place_option.h"
#include "deploy/cli/print_findings.h"
#include "worker/device/choice/device_choice.h"
#include "worker/step/forecast.h"

namespace lockstep::cli {
namespace {

constexpr double kMiB = 1 << 20;
constexpr size_t kPeakParts = 12;

struct CheckOptions {
  JobToCheck job;
  std::string device = "auto";
  bool plan = false;
  bool machine = false;
  std::string storage;
};

double MiB(int64_t bytes) { return static_cast<double>(bytes) / kMiB; }

std::string MemoryText(const worker::PlanMemory& memory) {
  return absl::StrFormat(
      "%.1f MiB: values, gradients and scratch %.1f, sums over passes %.1f, copies and constants %.1f",
      MiB(memory.total()), MiB(memory.arena), MiB(memory.gradients), MiB(memory.persistent));
}

// Where a worker's memory goes, and the kernels that it will run.
void PrintPlan(const worker::ReplicaForecast& forecast) {
  const auto part = [](const std::string& what, const std::string& text) {
    PrintFinding(Gravity::kOk, "  " + what, text);
  };
  part("state",
       absl::StrFormat("%.1f MiB, snapshots of it %.1f MiB", MiB(forecast.state_bytes), MiB(forecast.snapshot_bytes)));
  part("steps", absl::StrFormat("sums of gradients %.1f MiB, batches %.1f MiB", MiB(forecast.exchange_bytes),
                                MiB(forecast.batch_bytes)));
  part("training", MemoryText(forecast.training));
  if (forecast.evaluation.total() > 0) part("evaluation", MemoryText(forecast.evaluation));
  if (forecast.text.total() > 0) part("text", MemoryText(forecast.text));
  const worker::PlanPeak& peak = forecast.peak;
  part("peak", absl::StrFormat("at '%s': %.1f MiB of values, gradients and scratch at once, in %.1f MiB", peak.node,
                               MiB(peak.lower_bound), MiB(forecast.training.arena)));
  for (size_t i = 0; i < std::min(peak.parts.size(), kPeakParts); ++i) {
    std::cout << absl::StreamFormat("      %8.2f MiB  %s\n", MiB(peak.parts[i].bytes),
                                    EscapeControls(peak.parts[i].name));
  }
  for (const worker::PlannedStep& step : forecast.steps) {
    std::cout << "      " << EscapeControls(step.text) << "\n";
    const bool alone = step.refusals.empty() && step.implementation == "reference";
    if (alone) std::cout << "          the op has no other implementation on this device\n";
    for (const device::Refusal& refusal : step.refusals) {
      std::cout << "          not by " << refusal.implementation << ": " << EscapeControls(refusal.reason) << "\n";
    }
  }
}

int Check(CheckOptions options) {
  if (!options.storage.empty()) {
    Findings findings;
    CheckStorage(options.storage, findings);
    PrintFindings(findings);
    return findings.exit_code();
  }
  const absl::StatusOr<device::WorkerDevice> device = device::ParseWorkerDevice(options.device);
  if (!device.ok()) return Fail(device.status(), kExitUsage);
  Findings findings;
  if (options.job.path.empty()) {
    AddMachine(/*needs_gpu=*/true, findings);
    PrintFindings(findings);
    return findings.exit_code();
  }
  options.job.device = *device;
  const std::optional<worker::ReplicaForecast> forecast = CheckJob(options.job, findings);
  PrintFindings(findings);
  if (options.plan && forecast.has_value()) PrintPlan(*forecast);
  PrintCounts(findings);
  return findings.exit_code();
}

}  // namespace

void AddCheck(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("check", "Find what is wrong with a job before it is started");
  auto options = std::make_shared<CheckOptions>();
  command->add_option("job", options->job.path, "The job file");
  command->add_option("--set", options->job.overrides, "Override a setting: key=value")->allow_extra_args(false);
  AddPlace(*command, "--dir", options->job.directory, "The job's directory (default: checkpoint.dir of the job)");
  command->add_flag("--plan", options->plan,
                    "Also say where a worker's memory goes, and the kernel of every node, with what refused it");
  command->add_option("--device", options->device, "What workers are told to compute on: auto, cpu, cuda or cuda:N")
      ->capture_default_str();
  command->add_option("--listen", options->job.listen, "Where the chief will be told to listen, HOST:PORT");
  command->add_flag("--machine", options->machine, "Say what this machine has to compute with, without a job");
  AddPlace(*command, "--storage", options->storage,
           "Prove that jobs are safe in this place: s3://bucket/prefix, or a directory");
  command->callback([options, &exit_code] {
    const int asked = (options->job.path.empty() ? 0 : 1) + (options->storage.empty() ? 0 : 1);
    if (asked == 0 && !options->machine) {
      exit_code = Fail(absl::InvalidArgumentError("check: give a job file, --machine or --storage"), kExitUsage);
      return;
    }
    if (asked == 2 || (options->machine && !options->storage.empty())) {
      exit_code = Fail(absl::InvalidArgumentError("check: --storage stands alone"), kExitUsage);
      return;
    }
    exit_code = Check(*options);
  });
}

}  // namespace lockstep::cli
