#include "deploy/cli/check_job.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chief/server/job_directory.h"
#include "common/log/log.h"
#include "common/net/listen.h"
#include "common/training/prepare_job.h"
#include "deploy/cli/byte_units.h"
#include "deploy/cli/check_hooks.h"
#include "deploy/cli/machine.h"
#include "worker/device/choice/evaluate_node.h"
#include "worker/session/inspect_data.h"

namespace lockstep::cli {
namespace {

constexpr size_t kNamedNodes = 5;

// A CPU serves what it has no kernel of its own for with the reference kernels, which are slow.
void CheckKernels(const worker::ReplicaForecast& forecast, Findings& findings) {
  std::map<std::string, int> ops;
  std::vector<std::string> slow;
  for (const worker::PlannedStep& step : forecast.steps) {
    // Counting labels costs nothing.
    if (step.implementation != "reference" || step.op == "LossWeights") continue;
    slow.push_back(step.node);
    ++ops[step.op];
  }
  if (slow.empty() || slow.size() == forecast.steps.size()) return;
  std::vector<std::string> counts;
  for (const auto& [op, count] : ops) counts.push_back(absl::StrCat(count, " ", op));
  const size_t named = std::min(slow.size(), kNamedNodes);
  findings.Warn(
      "kernels",
      absl::StrCat(slow.size(), " of ", forecast.steps.size(),
                   " nodes run on the reference kernels, which are slow: ", absl::StrJoin(counts, ", "), "; they are ",
                   absl::StrJoin(slow.begin(), slow.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                   slow.size() > named ? ", ..." : "",
                   ". `lockstep check --plan` says why, and `lockstep profile` what share of a step they take"));
}

// What one worker will hold, and what it will compute with.
std::optional<worker::ReplicaForecast> CheckPlan(const PreparedJob& prepared, const device::WorkerDevice& where,
                                                 Findings& findings) {
  absl::StatusOr<worker::ReplicaForecast> forecast = worker::ForecastWorker(
      prepared.metagraph, prepared.job, {prepared.facts.held_bytes, prepared.facts.eval_samples}, where);
  if (!forecast.ok()) {
    findings.Error("worker", forecast.status(), kExitBadJob);
    return std::nullopt;
  }
  findings.Ok("memory", absl::StrFormat("%.1f MiB per worker: its process %.1f MiB, its data %.1f MiB, and the rest",
                                        static_cast<double>(forecast->host_total()) / kMiB,
                                        static_cast<double>(forecast->beside.process) / kMiB,
                                        static_cast<double>(forecast->beside.data) / kMiB));
  if (forecast->kept_bytes > 0) {
    findings.Ok("audit", absl::StrFormat("%d copies of audited states in each worker's memory, %.1f MiB",
                                         worker::kKeptCopies, static_cast<double>(forecast->kept_bytes) / kMiB));
  } else if (prepared.job.cluster().workers().max() > 1) {
    findings.Ok("audit",
                "no copies of audited states in memory: `resources.cpu_memory` has no room for them, and when replicas "
                "differ the job goes back to a checkpoint");
  }
  if (forecast->device_memory > 0) {
    findings.Ok("gpu memory", absl::StrFormat("%.1f MiB per worker, of %.1f MiB that it may take",
                                              static_cast<double>(forecast->device_total()) / kMiB,
                                              static_cast<double>(forecast->device_memory) / kMiB));
  } else if (prepared.job.resources().device() != job::Resources::DEVICE_REFERENCE) {
    CheckKernels(*forecast, findings);
  }
  return *std::move(forecast);
}

}  // namespace

std::optional<worker::ReplicaForecast> CheckJob(const JobToCheck& job, Findings& findings) {
  const JobReading reading = ReadJob(job.path, job.overrides);
  const JobSpec& spec = reading.spec;
  AddMachine(spec.resources().device() == job::Resources::DEVICE_CUDA, findings);
  std::optional<PreparedJob> prepared = PrepareJob(reading, worker::InspectData, device::EvaluateNode, findings);
  std::optional<worker::ReplicaForecast> forecast;
  // No worker holds the model's own file: it must not count as one's process.
  if (prepared.has_value()) prepared->initial.clear();
  if (!job.directory.empty() || !reading.mistakes.HasInvalidPart("checkpoint.dir")) {
    const std::string& directory = job.directory.empty() ? spec.checkpoint().dir() : job.directory;
    chief::LookAtDirectory(reading, prepared.has_value() ? &*prepared : nullptr, directory, findings);
  }
  // A run meets its worker's limits after its directory's.
  if (prepared.has_value()) forecast = CheckPlan(*prepared, job.device, findings);
  if (prepared.has_value()) CheckHooks(spec, prepared->facts.train_samples, prepared->training.end_step, findings);
  if (!job.listen.empty()) {
    const absl::Status listens = CheckListen(job.listen);
    listens.ok() ? findings.Ok("listen", job.listen) : findings.Error("listen", listens, kExitBadJob);
  }
  if (prepared.has_value() && static_cast<int64_t>(spec.cluster().workers().max()) > spec.train().logical_shards()) {
    findings.Warn("cluster",
                  absl::StrCat("up to ", spec.cluster().workers().max(), " workers for ", spec.train().logical_shards(),
                               " logical shards: those beyond stand by as spares"));
  }
  if (prepared.has_value() && spec.cluster().workers().max() == 1) {
    findings.Ok("audit",
                "none: with one worker there is no other state to compare with, and a bit that flips in its "
                "memory is not noticed");
  }
  return forecast;
}

absl::Status RefuseJob(const JobReading& job, ExitCode& exit_code) {
  Findings findings;
  PrepareJob(job, worker::InspectData, device::EvaluateNode, findings);
  const std::string first(findings.first_error().message());
  for (const Finding& finding : findings.all()) {
    if (finding.gravity == Gravity::kError && finding.text != first) LS_LOG(error, finding.text);
  }
  exit_code = findings.exit_code();
  return findings.first_error();
}

}  // namespace lockstep::cli
