#include "worker/step/replica_plans.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/status_macros.h"
#include "common/training/training_policy.h"
#include "worker/profile/profiled_device.h"
#include "worker/step/gradient_exchange.h"
#include "worker/step/gradient_memory.h"
#include "worker/step/job_device.h"

namespace lockstep::worker {

std::string RestLabel(int64_t samples) { return absl::StrCat(kEvaluationLabel, "-", samples); }

bool Holds(const KernelPlan& plan, absl::string_view label) {
  const std::string prefix = absl::StrCat(label, "/");
  const auto first = plan.choices.lower_bound(prefix);
  return first != plan.choices.end() && absl::StartsWith(first->first, prefix);
}

std::vector<const Plan*> ReplicaPlans::all() const {
  std::vector<const Plan*> plans = {training_plan.get()};
  for (const EvaluationPlan* evaluates : {&evaluation, &rest}) {
    if (evaluates->plan != nullptr) plans.push_back(evaluates->plan.get());
  }
  return plans;
}

absl::Status ReplicaPlans::Bind(const std::map<std::string, std::byte*>& variables,
                                const std::map<std::string, std::byte*>& evaluated, SharedMemory* shared_memory) {
  const auto for_peers = [&](size_t bytes) { return AllocateForPeers(shared_memory, *device, bytes); };
  LS_RETURN_IF_ERROR(training_plan->Bind(variables, for_peers));
  for (Plan* const plan : {evaluation.plan.get(), rest.plan.get(), text_plan.get()}) {
    if (plan != nullptr) LS_RETURN_IF_ERROR(plan->Bind(evaluated));
  }
  return absl::OkStatus();
}

void ReplicaPlans::Release() {
  for (Plan* const plan : {training_plan.get(), evaluation.plan.get(), rest.plan.get(), text_plan.get()}) {
    if (plan != nullptr) plan->Release();
  }
}

absl::StatusOr<ReplicaPlans> DraftReplicaPlans(const MetaGraph& metagraph, const JobSpec& job,
                                               const KernelPlan* replayed, Pulse* pulse, Profiler* profiler,
                                               const device::WorkerDevice& where, NewChoices choices) {
  ReplicaPlans plans;
  LS_ASSIGN_OR_RETURN(MadeDevice made, MakeJobDevice(job, replayed, where));
  plans.device = std::move(made.device);
  plans.chosen = std::move(made.chosen);
  plans.device_memory = made.memory;
  if (profiler != nullptr) plans.device = std::make_unique<ProfiledDevice>(std::move(plans.device), profiler);
  plans.options.pulse = pulse;
  LS_RETURN_IF_ERROR(DraftPlansOn(metagraph, job, replayed, choices, plans));
  return plans;
}

namespace {

// With the options of the training plan, and the choices of `replayed` if it has any for `label`: a job that was given
// evaluations later has a kernel plan without them, and equal machines choose alike.
absl::Status DraftEvaluation(const KernelPlan* replayed, std::string label, const ReplicaPlans& plans,
                             EvaluationPlan& made) {
  PlanOptions options = plans.options;
  options.choices = replayed != nullptr && Holds(*replayed, label) ? &replayed->choices : nullptr;
  options.label = std::move(label);
  options.accumulate_passes = false;
  LS_ASSIGN_OR_RETURN(made.plan, Plan::Draft(plans.device.get(), made.graph.graph, options));
  return absl::OkStatus();
}

}  // namespace

absl::Status DraftRest(const MetaGraph& metagraph, const KernelPlan* replayed, int64_t samples, ReplicaPlans& plans) {
  plans.eval_samples = samples;
  const EvaluationPlan& full = plans.evaluation;
  if (full.plan == nullptr) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(std::optional<EvaluationGraph> graph, MakeRestGraph(metagraph, full.graph, full.batch, samples));
  if (!graph.has_value()) return absl::OkStatus();
  plans.rest.graph = *std::move(graph);
  plans.rest.batch = samples % full.batch;
  return DraftEvaluation(replayed, RestLabel(plans.rest.batch), plans, plans.rest);
}

absl::Status DraftPlansOn(const MetaGraph& metagraph, const JobSpec& job, const KernelPlan* replayed,
                          NewChoices choices, ReplicaPlans& plans) {
  const bool blocks = job.train().recompute() == job::Train::RECOMPUTE_BLOCKS;
  plans.options.recompute = blocks ? Recomputation::kBlocks : Recomputation::kCheap;
  if (replayed != nullptr) ApplyKernelPlan(*replayed, &plans.options);
  plans.options.trials = replayed == nullptr && choices == NewChoices::kByTrial && job.numerics().tuned();
  LS_ASSIGN_OR_RETURN(plans.training, MakeTrainingGraph(metagraph));
  const int64_t shard = job.train().global_batch_size() / job.train().logical_shards();
  plans.options.accumulate_passes = shard > metagraph.pass_batch;
  plans.options.gradients = GradientMemoryFor(*plans.device, static_cast<int>(job.train().logical_shards()),
                                              job.cluster().workers().max(), metagraph.update.reduction);
  LS_ASSIGN_OR_RETURN(plans.training_plan, Plan::Draft(plans.device.get(), plans.training.graph, plans.options));
  if (job.data().has_eval()) {
    plans.evaluation.batch = lockstep::EvalBatch(job);
    LS_ASSIGN_OR_RETURN(plans.evaluation.graph, MakeEvaluationGraph(metagraph, plans.evaluation.batch));
    LS_RETURN_IF_ERROR(DraftEvaluation(replayed, kEvaluationLabel, plans, plans.evaluation));
  }
  plans.options.choices = nullptr;  // the caller's
  if (job.eval().has_sample()) {
    const absl::StatusOr<Graph> graph = MakeTextGraph(metagraph);
    if (!graph.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("eval.sample: ", graph.status().message(), ". Remove the section"));
    }
    plans.text_graph = *graph;
    plans.text = {.prompt = job.eval().sample().prompt(),
                  .bytes = job.eval().sample().bytes(),
                  .temperature = job.eval().sample().temperature(),
                  .seed = job.train().seed()};
    PlanOptions options;
    options.label = "text";
    options.pulse = plans.options.pulse;
    LS_ASSIGN_OR_RETURN(plans.text_plan, Plan::Draft(plans.device.get(), plans.text_graph, options));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
