// Stage 3 for a whole job: the device, the graphs and the plans of one worker, drafted without memory. A replica binds
// them to its state; a forecast only reads what they would take. Which plans there are and with what options is decided
// here alone.
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
#include "common/graph/metagraph.h"
#include "common/graph/passes/training_graph.h"
#include "common/job/job.h"
#include "common/sync/pulse.h"
#include "worker/device/choice/device_choice.h"
#include "worker/device/device.h"
#include "worker/plan/kernel_plan.h"
#include "worker/plan/plan.h"
#include "worker/profile/profiler.h"
#include "worker/sample/text_writer.h"

namespace lockstep::worker {

struct ReplicaPlans {
  std::unique_ptr<device::Device> device;
  device::ChosenDevice chosen;  // which one that is, and why
  // What its own memory has to give, by `resources.gpu_memory` and by what is free; 0: it computes in the host's.
  int64_t device_memory = 0;
  PlanOptions options;  // of the plan that was drafted last
  TrainingGraph training;
  std::unique_ptr<Plan> training_plan;
  EvaluationGraph evaluation;
  int64_t eval_batch = 0;           // 0: the job does not evaluate
  std::unique_ptr<Plan> eval_plan;  // null: likewise
  Graph text_graph;
  TextOptions text;
  // Of text_graph; null: the job does not let its model write. It reaches no state, so no kernel plan fixes it.
  std::unique_ptr<Plan> text_plan;

  // Those whose choices a kernel plan holds.
  std::vector<const Plan*> all() const;
  // Takes the memory of all; see Plan::Bind. `evaluated`: the variables that the evaluation plan reads.
  absl::Status Bind(const std::map<std::string, std::byte*>& variables,
                    const std::map<std::string, std::byte*>& evaluated);
  // Gives it back.
  void Release();
};

// What the names of an evaluation plan's nodes begin with, in kernel plans and probes.
inline constexpr char kEvaluationPrefix[] = "evaluation/";
// Whether the plan was made for a job that evaluates.
bool HoldsEvaluation(const KernelPlan& plan);

// How kernels are chosen where no kernel plan says.
enum class NewChoices : uint8_t {
  kByRule,
  kByTrial,  // as the job's `numerics.tuned` allows it: takes time, and the device's memory for a while
};

// Drafts the plans of the job, with the choices of `replayed` (null: as `choices` says; what reaches no state and what
// was added to a job that has a kernel plan is chosen by rule, so that equal machines choose alike). Advances `pulse`
// (may be null; it outlives the plans) with every node. `profiler` (likewise) watches the device. `where` is what this
// worker was told to compute on. FailedPrecondition when it has no device that the job takes (see ChooseDevice) or the
// device cannot replay the plan, InvalidArgument and Unimplemented as of MakeTrainingGraph and Plan::Draft.
absl::StatusOr<ReplicaPlans> DraftReplicaPlans(const MetaGraph& metagraph, const JobSpec& job,
                                               const KernelPlan* replayed, Pulse* pulse, Profiler* profiler,
                                               const device::WorkerDevice& where = {},
                                               NewChoices choices = NewChoices::kByRule);
// The same on the device that `plans` has, with its options.pulse: only the graphs and the plans are made.
absl::Status DraftPlansOn(const MetaGraph& metagraph, const JobSpec& job, const KernelPlan* replayed,
                          NewChoices choices, ReplicaPlans& plans);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_REPLICA_PLANS_H_
