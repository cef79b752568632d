#include "worker/step/forecast.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/state_layout.h"
#include "common/graph/training_graph.h"
#include "common/job/extent.h"
#include "common/status/status_macros.h"
#include "common/training/training_policy.h"
#include "worker/device/devices.h"
#include "worker/step/replica_state.h"

namespace lockstep::worker {
namespace {

device::DeviceKind KindOf(const JobSpec& job) {
  switch (job.resources().device()) {
    case job::Resources::DEVICE_REFERENCE:
      return device::DeviceKind::kReference;
    case job::Resources::DEVICE_CPU:
    case job::Resources::DEVICE_AUTO:
    default:
      return device::DeviceKind::kCpu;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<device::Device>> MakeJobDevice(const JobSpec& job, const KernelPlan* replayed) {
  return device::MakeDevice(KindOf(job), DeviceOptionsFor(static_cast<int>(job.resources().cpu_threads()), replayed));
}

absl::StatusOr<int64_t> PlanLimit(const JobSpec& job, int64_t state_bytes) {
  if (!job.resources().has_cpu_memory()) return 0;
  const int64_t held = (1 + kSnapshotBuffers) * state_bytes;
  const int64_t limit = job.resources().cpu_memory().bytes();
  if (held < limit) return limit - held;
  return absl::ResourceExhaustedError(absl::StrCat("the state and ", kSnapshotBuffers, " snapshots of it take ", held,
                                                   " bytes, resources.cpu_memory allows ", limit, "; raise it"));
}

absl::StatusOr<ReplicaForecast> ForecastReplica(const MetaGraph& metagraph, const JobSpec& job) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<device::Device> device, MakeJobDevice(job, nullptr));
  LS_ASSIGN_OR_RETURN(ReplicaState state, ReplicaState::Create(MakeStateLayout(metagraph)));
  std::map<std::string, std::byte*> variables;
  for (const Variable& variable : metagraph.forward.variables) {
    variables[variable.name] = state.tensor(state.layout().Find(variable.name)).data();
  }
  ReplicaForecast forecast;
  forecast.state_bytes = static_cast<int64_t>(state.bytes().size());
  forecast.snapshot_bytes = kSnapshotBuffers * forecast.state_bytes;
  PlanOptions options;
  LS_ASSIGN_OR_RETURN(options.memory_limit_bytes, PlanLimit(job, forecast.state_bytes));
  options.accumulate_passes = job.train().global_batch_size() / job.train().logical_shards() > PassBatch(job);
  LS_ASSIGN_OR_RETURN(const TrainingGraph training, MakeTrainingGraph(metagraph));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<Plan> plan, Plan::Make(device.get(), training.graph, variables, options));
  forecast.training = plan->memory();
  forecast.nodes = plan->Describe();
  if (!job.data().has_eval()) return forecast;
  if (options.memory_limit_bytes > 0) options.memory_limit_bytes -= forecast.training.total();
  options.label = "evaluation";
  options.accumulate_passes = false;
  LS_ASSIGN_OR_RETURN(const EvaluationGraph evaluation, MakeEvaluationGraph(metagraph, EvalBatch(job)));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<Plan> eval_plan,
                      Plan::Make(device.get(), evaluation.graph, variables, options));
  forecast.evaluation = eval_plan->memory();
  return forecast;
}

}  // namespace lockstep::worker
