// Stage 3 for a whole job: the device, the graphs and the plans of one worker, drafted without memory. A replica binds
// them to its state; a forecast only reads their sizes. All decisions about plans and their options are made here.
//
// Threading: owned by the thread that makes it, which owns the device.
#ifndef LOCKSTEP_WORKER_STEP_REPLICA_PLANS_H_
#define LOCKSTEP_WORKER_STEP_REPLICA_PLANS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/graph/metagraph.h"
#include "common/graph/passes/training_graph.h"
#include "common/job/job.h"
#include "common/sync/pulse.h"
#include "worker/collectives/shared/shared_memory.h"
#include "worker/device/choice/device_choice.h"
#include "worker/device/device.h"
#include "worker/plan/kernel_plan.h"
#include "worker/plan/plan.h"
#include "worker/profile/profiler.h"
#include "worker/sample/text_writer.h"

namespace lockstep::worker {

// A plan that evaluates, and what it was made of.
struct EvaluationPlan {
  int64_t batch = 0;  // samples of a pass
  EvaluationGraph graph;
  std::unique_ptr<Plan> plan;  // null: there is none
};

struct ReplicaPlans {
  std::unique_ptr<device::Device> device;
  device::ChosenDevice chosen;  // the choice and its reason
  // The bytes of device memory that are allowed by `resources.gpu_memory` and free; 0: it computes in host memory.
  int64_t device_memory = 0;
  PlanOptions options;  // of the training plan, without choices
  TrainingGraph training;
  std::unique_ptr<Plan> training_plan;
  EvaluationPlan evaluation;  // of full passes; without a plan the job does not evaluate
  EvaluationPlan rest;        // of the last pass, where that is smaller and may not be filled up
  int64_t eval_samples = 0;   // that DraftRest was told
  Graph text_graph;
  TextOptions text;
  // Of text_graph; null: the job generates no samples. It does not affect the state and is not part of the kernel plan.
  std::unique_ptr<Plan> text_plan;

  // The plans whose choices are part of the kernel plan.
  std::vector<const Plan*> all() const;
  // Allocates the memory of all plans (Plan::Bind). `evaluated`: the variables that the evaluation plans read.
  // `shared_memory`: where gradients lie that peers may read; may be null.
  absl::Status Bind(const std::map<std::string, std::byte*>& variables,
                    const std::map<std::string, std::byte*>& evaluated, SharedMemory* shared_memory);
  // Frees the memory of all plans.
  void Release();
};

// The label of the plan that evaluates full passes, in kernel plans and probes.
inline constexpr char kEvaluationLabel[] = "evaluation";
// That of a pass of `samples` samples, which differs with the number: a job may be given another evaluation set.
std::string RestLabel(int64_t samples);
// Whether the kernel plan has choices for a plan with this label.
bool Holds(const KernelPlan& plan, absl::string_view label);

// How to choose kernels without a kernel plan.
enum class NewChoices : uint8_t {
  kByRule,
  kByTrial,  // if the job's `numerics.tuned` allows it; takes time, and device memory temporarily
};

// Drafts the plans of the job, without that of the rest, with the choices of `replayed`; if null, by `choices`. The
// text plan, and an evaluation plan that the kernel plan does not contain, are always chosen by rule, so that equal
// machines choose alike. Advances `pulse` (may be null; outlives the plans) with every node. `profiler` (likewise)
// profiles the device. `where`: the worker's options `--device` and `--local-rank`. FailedPrecondition when no device
// can compute the job (see ChooseDevice) or replay the plan; InvalidArgument and Unimplemented as from
// MakeTrainingGraph and Plan::Draft.
absl::StatusOr<ReplicaPlans> DraftReplicaPlans(const MetaGraph& metagraph, const JobSpec& job,
                                               const KernelPlan* replayed, Pulse* pulse, Profiler* profiler,
                                               const device::WorkerDevice& where = {},
                                               NewChoices choices = NewChoices::kByRule);
// The same on the device of `plans` and with its options.pulse: makes only the graphs and plans.
absl::Status DraftPlansOn(const MetaGraph& metagraph, const JobSpec& job, const KernelPlan* replayed,
                          NewChoices choices, ReplicaPlans& plans);
// Drafts the plan of the rest of an evaluation set of `samples` samples, where the job needs one, with the options of
// `plans`. Errors likewise.
absl::Status DraftRest(const MetaGraph& metagraph, const KernelPlan* replayed, int64_t samples, ReplicaPlans& plans);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_REPLICA_PLANS_H_
