#include "worker/step/forecast.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/graph/state_layout.h"
#include "common/status/status_macros.h"
#include "worker/step/replica_state.h"

namespace lockstep::worker {
namespace {

constexpr size_t kNamedParts = 3;

}  // namespace

absl::StatusOr<ReplicaForecast> ForecastOf(const MetaGraph& metagraph, const ReplicaPlans& plans) {
  ReplicaForecast forecast;
  LS_ASSIGN_OR_RETURN(forecast.state_bytes, ReplicaState::BytesOf(MakeStateLayout(metagraph)));
  forecast.snapshot_bytes = kSnapshotBuffers * forecast.state_bytes;
  forecast.training = plans.training_plan->memory();
  if (plans.eval_plan != nullptr) forecast.evaluation = plans.eval_plan->memory();
  forecast.peak = plans.training_plan->Peak();
  forecast.nodes = plans.training_plan->Describe();
  return forecast;
}

absl::Status CheckMemoryLimit(const ReplicaForecast& forecast, const JobSpec& job) {
  const int64_t limit = job.resources().cpu_memory().bytes();
  if (!job.resources().has_cpu_memory() || forecast.total() <= limit) return absl::OkStatus();
  std::string largest;
  for (size_t i = 0; i < std::min(forecast.peak.parts.size(), kNamedParts); ++i) {
    const PlanPeak::Part& part = forecast.peak.parts[i];
    absl::StrAppend(&largest, i == 0 ? "" : ", ", "'", part.name, "' (", part.bytes, ")");
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("a worker needs ", forecast.total(), " bytes (state ", forecast.state_bytes, ", snapshots of it ",
                   forecast.snapshot_bytes, ", training plan ", forecast.training.total(), ", evaluation plan ",
                   forecast.evaluation.total(), "), resources.cpu_memory allows ", limit,
                   ". Largest of the training plan's values: ", largest,
                   ". Use a smaller batch or more logical shards, or raise the limit."));
}

absl::StatusOr<ReplicaForecast> ForecastReplica(const MetaGraph& metagraph, const JobSpec& job) {
  LS_ASSIGN_OR_RETURN(const ReplicaPlans plans, DraftReplicaPlans(metagraph, job, nullptr, nullptr, nullptr));
  LS_ASSIGN_OR_RETURN(ReplicaForecast forecast, ForecastOf(metagraph, plans));
  LS_RETURN_IF_ERROR(CheckMemoryLimit(forecast, job));
  return forecast;
}

}  // namespace lockstep::worker
