#include "worker/step/replica_plans.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/training/training_policy.h"
#include "worker/profile/profiled_device.h"
#include "worker/step/gradient_exchange.h"
#include "worker/step/job_device.h"

namespace lockstep::worker {

bool HoldsEvaluation(const KernelPlan& plan) {
  const auto first = plan.choices.lower_bound(kEvaluationPrefix);
  return first != plan.choices.end() && absl::StartsWith(first->first, kEvaluationPrefix);
}

std::vector<const Plan*> ReplicaPlans::all() const {
  std::vector<const Plan*> plans = {training_plan.get()};
  if (eval_plan != nullptr) plans.push_back(eval_plan.get());
  return plans;
}

absl::Status ReplicaPlans::Bind(const std::map<std::string, std::byte*>& variables,
                                const std::map<std::string, std::byte*>& evaluated) {
  LS_RETURN_IF_ERROR(training_plan->Bind(variables));
  if (eval_plan != nullptr) LS_RETURN_IF_ERROR(eval_plan->Bind(evaluated));
  return text_plan == nullptr ? absl::OkStatus() : text_plan->Bind(evaluated);
}

void ReplicaPlans::Release() {
  for (Plan* const plan : {training_plan.get(), eval_plan.get(), text_plan.get()}) {
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

absl::Status DraftPlansOn(const MetaGraph& metagraph, const JobSpec& job, const KernelPlan* replayed,
                          NewChoices choices, ReplicaPlans& plans) {
  const bool blocks = job.train().recompute() == job::Train::RECOMPUTE_BLOCKS;
  plans.options.recompute = blocks ? Recomputation::kBlocks : Recomputation::kCheap;
  if (replayed != nullptr) ApplyKernelPlan(*replayed, &plans.options);
  plans.options.trials = replayed == nullptr && choices == NewChoices::kByTrial && job.numerics().tuned();
  LS_ASSIGN_OR_RETURN(plans.training, MakeTrainingGraph(metagraph));
  const int64_t shard = job.train().global_batch_size() / job.train().logical_shards();
  plans.options.accumulate_passes = shard > metagraph.pass_batch;
  plans.options.keep_gradients =
      GradientExchange::TakesAsItIs(static_cast<int>(job.train().logical_shards()), metagraph.update.reduction);
  LS_ASSIGN_OR_RETURN(plans.training_plan, Plan::Draft(plans.device.get(), plans.training.graph, plans.options));
  if (job.data().has_eval()) {
    plans.eval_batch = EvalBatch(job);
    LS_ASSIGN_OR_RETURN(plans.evaluation, MakeEvaluationGraph(metagraph, plans.eval_batch));
    plans.options.label = "evaluation";
    // A job that was given evaluations later has a kernel plan without them: equal machines choose alike.
    if (replayed != nullptr && !HoldsEvaluation(*replayed)) plans.options.choices = nullptr;
    plans.options.accumulate_passes = false;
    LS_ASSIGN_OR_RETURN(plans.eval_plan, Plan::Draft(plans.device.get(), plans.evaluation.graph, plans.options));
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
