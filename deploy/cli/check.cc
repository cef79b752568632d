// `lockstep check`: everything of a job that can be known to fail before machines are spent on it.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/graph/build_metagraph.h"
#include "common/graph/serialize.h"
#include "common/graph/state_layout.h"
#include "common/job/extent.h"
#include "common/job/graph_request.h"
#include "common/job/job.h"
#include "common/job/load_model.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/training/training_policy.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/machine.h"
#include "worker/device/cuda_loader.h"
#include "worker/device/device_choice.h"
#include "worker/device/devices.h"
#include "worker/device/evaluate_node.h"
#include "worker/session/inspect_data.h"
#include "worker/step/forecast.h"

namespace lockstep::cli {
namespace {

constexpr double kMiB = 1 << 20;
constexpr size_t kPeakParts = 12;

struct CheckOptions {
  std::string job_path;
  std::vector<std::string> overrides;
  std::string directory;
  std::string device = "auto";
  bool plan = false;
  bool machine = false;
};

void Ok(const std::string& what, const std::string& finding) {
  std::cout << absl::StreamFormat("ok    %-11s %s\n", what, finding);
}
void Warn(const std::string& what, const std::string& finding) {
  std::cout << absl::StreamFormat("warn  %-11s %s\n", what, finding);
}

int64_t TrainableValues(const StateLayout& layout) {
  int64_t values = 0;
  for (const StateTensor& tensor : layout.tensors) {
    if (tensor.kind == StateKind::kParameter) values += NumElements(tensor.spec.shape);
  }
  return values;
}

// The folder that exists on the way to `directory`: where its bytes will lie.
std::filesystem::path NearestExisting(std::filesystem::path directory) {
  std::error_code error;
  directory = std::filesystem::absolute(directory, error);
  while (!directory.empty() && !std::filesystem::exists(directory, error) && directory != directory.parent_path()) {
    directory = directory.parent_path();
  }
  return directory;
}

void CheckDisk(const std::string& directory, int64_t state_bytes, int64_t kept) {
  std::error_code error;
  const std::filesystem::path place = NearestExisting(directory);
  const auto space = std::filesystem::space(place, error);
  // One more than is kept: the new checkpoint is complete before the oldest goes.
  const double needed = static_cast<double>(state_bytes) * static_cast<double>(kept + 1);
  const std::string text = absl::StrFormat("%s: %.0f MiB free, %d checkpoints need %.1f MiB", directory,
                                           static_cast<double>(space.available) / kMiB, kept + 1, needed / kMiB);
  if (error || static_cast<double>(space.available) < needed) {
    Warn("checkpoints", error ? absl::StrCat(place.string(), ": ", error.message()) : text);
  } else {
    Ok("checkpoints", text);
  }
}

// What this machine has to compute with.
absl::Status PrintMachine(bool needs_gpu) {
  LS_ASSIGN_OR_RETURN(const auto cpu, device::MakeDevice(device::DeviceKind::kCpu, {}));
  for (const Finding& finding : DescribeMachine(cpu->info(), device::FindCuda(), needs_gpu)) {
    finding.ok ? Ok(finding.what, finding.text) : Warn(finding.what, finding.text);
  }
  return absl::OkStatus();
}

std::string MemoryText(const worker::PlanMemory& memory) {
  return absl::StrFormat(
      "%.1f MiB: values, gradients and scratch %.1f, sums over passes %.1f, copies and constants %.1f",
      static_cast<double>(memory.total()) / kMiB, static_cast<double>(memory.arena) / kMiB,
      static_cast<double>(memory.gradients) / kMiB, static_cast<double>(memory.persistent) / kMiB);
}

// What one worker will hold, and the kernels that it will run.
absl::Status PrintPlan(const MetaGraph& metagraph, const JobSpec& job, const device::WorkerDevice& where) {
  LS_ASSIGN_OR_RETURN(const worker::ReplicaForecast forecast, worker::ForecastReplica(metagraph, job, where));
  Ok("memory",
     absl::StrFormat("%.1f MiB per worker beside its data", static_cast<double>(forecast.host_total()) / kMiB));
  if (forecast.device_memory > 0) {
    Ok("gpu memory", absl::StrFormat("%.1f MiB per worker, of %.1f MiB that it may take",
                                     static_cast<double>(forecast.device_total()) / kMiB,
                                     static_cast<double>(forecast.device_memory) / kMiB));
  }
  Ok("  state", absl::StrFormat("%.1f MiB, snapshots of it %.1f MiB", static_cast<double>(forecast.state_bytes) / kMiB,
                                static_cast<double>(forecast.snapshot_bytes) / kMiB));
  Ok("  steps", absl::StrFormat("sums of gradients %.1f MiB, batches %.1f MiB",
                                static_cast<double>(forecast.exchange_bytes) / kMiB,
                                static_cast<double>(forecast.batch_bytes) / kMiB));
  Ok("  training", MemoryText(forecast.training));
  if (job.data().has_eval()) Ok("  evaluation", MemoryText(forecast.evaluation));
  if (job.eval().has_sample()) Ok("  text", MemoryText(forecast.text));
  const worker::PlanPeak& peak = forecast.peak;
  Ok("  peak", absl::StrFormat("at '%s': %.1f MiB of values, gradients and scratch at once, in %.1f MiB", peak.node,
                               static_cast<double>(peak.lower_bound) / kMiB,
                               static_cast<double>(forecast.training.arena) / kMiB));
  for (size_t i = 0; i < std::min(peak.parts.size(), kPeakParts); ++i) {
    std::cout << absl::StreamFormat("      %8.2f MiB  %s\n", static_cast<double>(peak.parts[i].bytes) / kMiB,
                                    peak.parts[i].name);
  }
  for (const std::string& node : forecast.nodes) std::cout << "      " << node << "\n";
  return absl::OkStatus();
}

int Check(const CheckOptions& options) {
  const absl::StatusOr<device::WorkerDevice> where = device::ParseWorkerDevice(options.device);
  if (!where.ok()) return Fail(where.status(), kExitUsage);
  if (options.job_path.empty()) {
    const absl::Status printed = PrintMachine(/*needs_gpu=*/true);
    return printed.ok() ? static_cast<int>(kExitDone) : Fail(printed, kExitBug);
  }
  absl::StatusOr<JobSpec> job = LoadJob(options.job_path, options.overrides);
  if (!job.ok()) return Fail(job.status(), kExitBadJob);
  Ok("job", absl::StrCat(options.job_path, "  '", job->name(), "'"));
  const bool needs_gpu = job->resources().device() == job::Resources::DEVICE_CUDA;
  if (const absl::Status printed = PrintMachine(needs_gpu); !printed.ok()) return Fail(printed, kExitBug);

  auto imported = LoadModel(*job, device::EvaluateNode);
  if (!imported.ok()) return Fail(imported.status(), kExitBadJob);
  const Graph* graph = imported->has_value() ? &(*imported)->graph : nullptr;
  if (imported->has_value()) {
    for (const std::string& warning : (*imported)->warnings) Warn("model.onnx", warning);
  }

  absl::StatusOr<DataFacts> facts = worker::InspectData(*job, graph);
  if (!facts.ok()) return Fail(facts.status(), kExitBadData);
  Ok("data", absl::StrCat(facts->train_samples, " training samples of ", ShapeString(facts->inputs[0].shape), ", ",
                          facts->eval_samples, " to evaluate"));

  absl::StatusOr<TrainingPolicy> policy = MakeTrainingPolicy(*job, *facts);
  if (!policy.ok()) return Fail(policy.status(), kExitBadJob);
  const int64_t batch = job->train().global_batch_size();
  Ok("training", TotalSteps(*job, facts->train_samples).has_value()
                     ? absl::StrFormat("%d steps of %d samples in %d logical shards", policy->end_step, batch,
                                       policy->logical_shards)
                     : absl::StrFormat("%s, steps of %d samples in %d logical shards",
                                       AmountText(job->train().duration()), batch, policy->logical_shards));

  auto request = MakeMetaGraphRequest(*job, graph, facts->inputs, facts->labels, facts->train_samples);
  if (!request.ok()) return Fail(request.status(), kExitBadJob);
  if (imported->has_value()) request->aliases = (*imported)->aliases;
  absl::StatusOr<MetaGraph> metagraph = BuildMetaGraph(*request);
  if (!metagraph.ok()) return Fail(metagraph.status(), kExitBadJob);
  const absl::StatusOr<std::string> fingerprint = Fingerprint(*metagraph);
  if (!fingerprint.ok()) return Fail(fingerprint.status(), kExitBadJob);
  const StateLayout layout = MakeStateLayout(*metagraph);
  Ok("model", absl::StrFormat("%d trainable values in %d tensors, state %.2f MiB, metagraph %s",
                              TrainableValues(layout), layout.tensors.size(),
                              static_cast<double>(layout.TotalBytes()) / kMiB, fingerprint->substr(0, 12)));

  if (options.plan) {
    const absl::Status planned = PrintPlan(*metagraph, *job, *where);
    if (!planned.ok()) return Fail(planned, kExitBadJob);
  }

  const std::string directory = options.directory.empty() ? job->checkpoint().dir() : options.directory;
  CheckDisk(directory, layout.TotalBytes(), job->checkpoint().keep_latest());
  if (static_cast<int64_t>(job->cluster().workers().max()) > job->train().logical_shards()) {
    Warn("cluster", absl::StrCat("up to ", job->cluster().workers().max(), " workers for ",
                                 job->train().logical_shards(), " logical shards: those beyond stand by as spares"));
  }
  return kExitDone;
}

}  // namespace

void AddCheck(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("check", "Find what is wrong with a job before it is started");
  auto options = std::make_shared<CheckOptions>();
  command->add_option("job", options->job_path, "The job file");
  command->add_option("--set", options->overrides, "Override a setting: key=value")->allow_extra_args(false);
  command->add_option("--dir", options->directory, "The job's directory (default: checkpoint.dir of the job)");
  command->add_flag("--plan", options->plan, "Also plan a worker: its memory, and the kernel of every node");
  command->add_option("--device", options->device, "What --plan plans for: auto, cpu, cuda or cuda:N")
      ->capture_default_str();
  command->add_flag("--machine", options->machine, "Say what this machine has to compute with, without a job");
  command->callback([options, &exit_code] {
    if (options->job_path.empty() && !options->machine) {
      exit_code = Fail(absl::InvalidArgumentError("check: give a job file, or --machine"), kExitUsage);
      return;
    }
    exit_code = Check(*options);
  });
}

}  // namespace lockstep::cli
