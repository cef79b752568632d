// PlanBuilder: computes results of the forward pass again in the backward pass instead of keeping them. Here and not in
// the graph, since all that decides bits is decided by now: fusions, layouts and kernels. A step that runs again is the
// same kernel on the same inputs; neither the metagraph nor the kernel plan knows of it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/graph/differentiate.h"
#include "common/status/status_macros.h"
#include "worker/plan/plan_builder.h"
#include "worker/profile/operations.h"

namespace lockstep::worker {
namespace {

// Products of so few terms per element take little more time than writing their results: attention's scores.
constexpr int64_t kFewTerms = 64;
// The share of a pass's products that may be computed again where nothing more was asked for: one in so many.
constexpr int64_t kProductsPerAgain = 128;

// Whether a product sums few terms per element of its result.
bool HasFewTerms(const device::KernelRequest& request) {
  const Shape& a = request.inputs[0].shape;
  const auto* product = std::get_if<BatchMatMulAttributes>(&request.node->attributes);
  const bool transposed = product != nullptr && product->trans_a;
  return a.size() >= 2 && a[a.size() - (transposed ? 2 : 1)] <= kFewTerms;
}

// Ops that move through their operands about once.
bool IsCheap(const device::KernelRequest& request) {
  switch (request.node->op) {
    case OpType::kMatMul:
    case OpType::kBatchMatMul:
      return HasFewTerms(request);
    case OpType::kAdd:
    case OpType::kSub:
    case OpType::kMul:
    case OpType::kNeg:
    case OpType::kCast:
    case OpType::kRelu:
    case OpType::kLeakyRelu:
    case OpType::kSigmoid:
    case OpType::kTanh:
    case OpType::kHardSwish:
    case OpType::kGelu:
    case OpType::kClip:
    case OpType::kScale:
    case OpType::kTranspose:
    case OpType::kSplit:
    case OpType::kSlice:
    case OpType::kConcat:
    case OpType::kExpand:
    case OpType::kSoftmax:
    case OpType::kBatchNormalization:
    case OpType::kBatchNormTraining:
    case OpType::kLayerNormalization:
    case OpType::kRmsNormalization:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool PlanBuilder::BeginsBackward(const Node& node) const {
  return std::find(node.inputs.begin(), node.inputs.end(), kGradientSeed) != node.inputs.end();
}

RecomputeProblem PlanBuilder::DescribeRecompute() const {
  RecomputeProblem problem;
  problem.backward = backward_;
  for (const PlanStorage& storage : state_->storages) {
    const bool gradient = storage.home == Home::kGradient;
    const bool in_arena = storage.home == Home::kArena || (gradient && !writes_apart());
    problem.results.push_back(
        {.bytes = in_arena ? storage.bytes : 0, .droppable = false, .kept = gradient && keeps_in_arena()});
  }
  for (size_t i = 0; i < state_->steps.size(); ++i) {
    const PlanStep& step = state_->steps[i];
    RecomputeProblem::Step described;
    const auto storages = [this](const std::vector<int>& values, std::vector<int>* into) {
      for (const int value : values) {
        if (value >= 0) into->push_back(state_->values[static_cast<size_t>(value)].storage);
      }
    };
    storages(step.inputs, &described.reads);
    storages(step.outputs, &described.writes);
    if (step.kernel != nullptr) described.scratch = static_cast<int64_t>(step.kernel->workspace_bytes());
    const StepOrigin& origin = origins_[i];
    if (origin.request.node != nullptr && IsProduct(origin.request.node->op)) {
      described.operations = ArithmeticOperations(origin.request);
    }
    described.cheap = origin.request.node == nullptr || IsCheap(origin.request);
    for (const int result : described.writes) {
      const PlanStorage& storage = state_->storages[static_cast<size_t>(result)];
      problem.results[static_cast<size_t>(result)].droppable = storage.home == Home::kArena && storage.bytes > 0;
    }
    problem.steps.push_back(std::move(described));
  }
  return problem;
}

absl::StatusOr<PlanStep> PlanBuilder::Again(const PlanStep& step, const StepOrigin& origin) {
  PlanStep again{.node = step.node, .description = step.description, .again = true};
  again.description.text = absl::StrCat("again: ", step.description.text);
  if (step.kernel == nullptr) return again;
  if (origin.request.node == nullptr) {
    LS_ASSIGN_OR_RETURN(again.kernel, device_->MakeReorder(origin.reorder));
    return again;
  }
  device::KernelRequest request = origin.request;
  request.implementation = step.kernel->implementation();
  LS_ASSIGN_OR_RETURN(again.kernel, device_->MakeKernel(request));
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    if (again.kernel->output_layout(static_cast<int>(i)) == step.kernel->output_layout(static_cast<int>(i))) continue;
    return absl::InternalError(absl::StrCat("node '", step.node, "': made again it writes another layout"));
  }
  return again;
}

absl::Status PlanBuilder::Recompute() {
  if (backward_ < 0 || options_.recompute == Recomputation::kNone) return absl::OkStatus();
  const RecomputeProblem problem = DescribeRecompute();
  DroppedResults dropped(problem.results.size(), false);
  if (options_.recompute == Recomputation::kBlocks) dropped = DropBlocks(problem);
  int64_t operations = 0;
  for (const RecomputeProblem::Step& step : problem.steps) operations += step.operations;
  dropped = DropCheap(problem, std::move(dropped), kLeastCheapBytes, operations / kProductsPerAgain);
  std::vector<PlanStep> before = std::move(state_->steps);
  state_->steps.clear();
  std::map<int, int> storage_again;  // dropped storage -> the one that is written again
  std::map<int, int> value_again;
  // The value that holds the same after it was computed again.
  const auto again_of = [&](int value) {
    if (value < 0) return value;
    if (const auto found = value_again.find(value); found != value_again.end()) return found->second;
    PlanValue copy = state_->values[static_cast<size_t>(value)];
    const auto [storage, is_new] = storage_again.emplace(copy.storage, static_cast<int>(state_->storages.size()));
    if (is_new) {
      const int64_t bytes = state_->storages[static_cast<size_t>(copy.storage)].bytes;
      state_->storages.push_back({.home = Home::kArena, .bytes = bytes});
    }
    copy.storage = storage->second;
    state_->values.push_back(std::move(copy));
    return value_again[value] = static_cast<int>(state_->values.size()) - 1;
  };
  const auto is_dropped = [&](int value) {
    return value >= 0 && dropped[static_cast<size_t>(state_->values[static_cast<size_t>(value)].storage)];
  };
  for (const auto& [index, again] : ScheduleSteps(problem, dropped)) {
    const auto at = static_cast<size_t>(index);
    if (!again) {
      // The forward pass keeps its places: what runs again is made from there.
      state_->steps.push_back(std::move(before[at]));
      if (index < backward_) continue;
      for (int& input : state_->steps.back().inputs) input = is_dropped(input) ? again_of(input) : input;
      continue;
    }
    LS_ASSIGN_OR_RETURN(PlanStep step, Again(state_->steps[at], origins_[at]));
    for (const int input : state_->steps[at].inputs) step.inputs.push_back(is_dropped(input) ? again_of(input) : input);
    for (const int output : state_->steps[at].outputs) step.outputs.push_back(again_of(output));
    state_->steps.push_back(std::move(step));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
