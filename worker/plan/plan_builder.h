// Builds a plan from a graph in these steps: values and kernels node by node (with fusion, and changes of layout where
// kernels ask for them), recomputation, lifetimes and in-place results, offsets in memory. The result is a draft;
// Plan::Bind allocates the memory.
//
// Threading: owned by the device's owner thread; used once.
#ifndef LOCKSTEP_WORKER_PLAN_PLAN_BUILDER_H_
#define LOCKSTEP_WORKER_PLAN_PLAN_BUILDER_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "worker/plan/plan_state.h"
#include "worker/plan/recompute.h"

namespace lockstep::worker {

class PlanBuilder {
 public:
  PlanBuilder(device::Device* device, const Graph& graph, const PlanOptions& options);
  absl::StatusOr<std::unique_ptr<Plan>> Build();

 private:
  using Home = PlanStorage::Home;

  // plan_builder.cc: values and steps.
  absl::Status AddSources();
  absl::Status AddNodes();
  absl::Status AddNode(const Node& node, const Node* relu);
  absl::Status AddView(const Node& node);
  absl::StatusOr<std::unique_ptr<device::Kernel>> MakeKernel(device::KernelRequest request, const std::string& name,
                                                             std::vector<device::Refusal>* refusals);
  absl::Status AddOutputs();
  // The ReLU that can be fused behind `node`, or null.
  const Node* FusableRelu(const Node& node) const;
  device::KernelRequest Request(const Node& node, const Node* relu) const;
  absl::StatusOr<int> Find(const Node& node, const std::string& name) const;
  // The value in another layout, for `reader` (null: for a view); adds the reorder kernel if there is none yet.
  absl::StatusOr<int> InLayout(int value, const device::Layout& layout, const Node* reader);
  // The storage of a variable's copy in another layout.
  Home HomeOfCopy(int variable, const Node* reader) const;
  int AddValue(std::string name, DType dtype, Shape shape, device::Layout layout, Home home);
  void AddCopy(int from, int to);
  absl::Status AddReorder(int from, int to);
  bool IsOutput(const std::string& name) const { return output_names_.count(name) > 0; }
  Home HomeOfOutput(const std::string& name) const;

  // The request from which a step was made, to make it again: a node's, a reorder, or neither for a copy.
  struct StepOrigin {
    device::KernelRequest request;
    device::ReorderRequest reorder;
  };

  // plan_recompute.cc
  absl::Status Recompute();
  bool BeginsBackward(const Node& node) const;
  RecomputeProblem DescribeRecompute() const;
  // Makes the step's kernel again, unbound.
  absl::StatusOr<PlanStep> Again(const PlanStep& step, const StepOrigin& origin);

  // plan_memory.cc: lifetimes and offsets.
  void FindLifetimes();
  void ShareInPlace();
  void ShareStep(const PlanStep& step, int index);
  // Scratch is a value that is alive only during its step; refresh steps may use the whole arena.
  void AddWorkspaces();
  absl::Status PlaceGradients();
  // `values`: the values of all gradients, in the order of the layout.
  void AddBucket(const Bucket& bucket, const std::vector<int>& values);
  // What a pass's gradients need by themselves: those that are added to sums over passes may go when they are read.
  static GradientMemory MemoryOfPass(const PlanOptions& options) {
    return options.accumulate_passes ? GradientMemory::kUntilRead : options.gradients;
  }
  bool keeps_in_arena() const { return MemoryOfPass(options_) == GradientMemory::kUntilNextPass; }
  bool writes_apart() const { return MemoryOfPass(options_) == GradientMemory::kApart; }
  void PlaceRest();

  PlanStorage& StorageOf(int value) {
    return state_->storages[static_cast<size_t>(state_->values[static_cast<size_t>(value)].storage)];
  }

  device::Device* device_;
  const Graph graph_;  // after rewriting
  const PlanOptions& options_;
  std::unique_ptr<Plan::State> state_;

  std::map<std::string, std::vector<const Node*>> readers_;
  std::set<std::string> output_names_;
  std::map<std::string, std::string> gradient_of_;  // gradient value -> parameter
  std::map<std::string, int> by_name_;
  std::map<std::pair<int, std::string>, int> in_layout_;
  std::set<std::string> remarked_;   // kinds of nodes for which a remark about the kernel choice was logged
  std::vector<StepOrigin> origins_;  // of the plan's steps, until Recompute
  int backward_ = -1;                // the first step of the backward pass, -1 for none
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_PLAN_BUILDER_H_
