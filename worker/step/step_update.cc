// StepRunner past the gate: the update of the state, and evaluation.
#include <numeric>
#include <tuple>

#include "absl/time/clock.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/collectives/exact_sum.h"
#include "worker/optimizer/optimizer.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {
namespace {

constexpr int kFirstStatisticSlot = 2;
// The tag of an evaluation slice is apart from those of a step's attempts.
constexpr uint32_t kSliceAttempt = 0x80000000u;
// One per field of EvaluationSums, in its order.
constexpr int kEvalSlots = 5;

}  // namespace

void StepRunner::Update(int64_t step, const ReducedWord& word, double denominator) {
  const Profiler::Scope scope(config_.profiler, ProfileTrack::kUpdate, "(update)");
  const absl::Time begin = absl::Now();
  double norm = 0;
  if (config_.metagraph.update.clip_global_norm.has_value()) {
    std::vector<absl::Span<const float>> gradients;
    for (const int t : declared_order_) gradients.push_back(exchange_.gradient(t));
    norm = GlobalNorm(gradients, denominator);
  }
  const UpdateScalars scalars = MakeUpdateScalars(config_.metagraph.update, step - 1, denominator, norm);
  UpdateScalars without_decay = scalars;
  without_decay.weight_decay = 0;
  without_decay.decay = 1;
  for (size_t t = 0; t < parameters_.size(); ++t) {
    const ParameterIndex& index = parameters_[t];
    ParameterUpdate update{.value = state_->floats(index.value), .gradient = exchange_.gradient(static_cast<int>(t))};
    for (size_t s = 0; s < index.slots.size(); ++s) update.slots[s] = state_->floats(index.slots[s]);
    if (index.average >= 0) update.average = state_->floats(index.average);
    ApplyUpdate(config_.metagraph.update.optimizer, index.decays ? scalars : without_decay, update);
    if (config_.metagraph.update.reduction == ReductionMode::kExact && config_.logical_shards > 1) {
      state_->exponent(index.exponent) = NextExponent(word.magnitudes[t], exponents_[t]);
    }
  }
  MoveStatistics(word);
  training_stale_ = true;
  eval_stale_ = true;
  times_.update += absl::Now() - begin;
}

void StepRunner::MoveStatistics(const ReducedWord& word) {
  const int slots_per_shard = static_cast<int>(word.slots.size()) / config_.logical_shards;
  int slot = kFirstStatisticSlot;
  for (size_t i = 0; i < config_.training.statistics.size(); ++i) {
    const StatisticUpdate& update = config_.training.statistics[i];
    const absl::Span<float> running = state_->floats(state_->layout().Find(update.variable));
    for (int64_t e = 0; e < statistic_sizes_[i]; ++e, ++slot) {
      double mean = 0;
      for (int k = 0; k < config_.logical_shards; ++k) mean += DoubleOf(word.slots[k * slots_per_shard + slot]);
      mean /= config_.logical_shards;
      running[e] = static_cast<float>(update.momentum * running[e] + (1.0 - update.momentum) * mean);
    }
  }
}

absl::StatusOr<std::vector<uint64_t>> StepRunner::EvaluateBatch(int64_t step, int64_t index) {
  std::vector<uint64_t> slots(kEvalSlots, SlotOf(0.0));
  if (index >= NumEvalBatches(*eval_, config_.eval_batch)) return slots;
  ReadEvalBatch(*eval_, config_.eval_batch, index, eval_batch_);
  std::vector<const std::byte*> inputs;
  for (const int field : eval_input_fields_) {
    inputs.push_back(field < 0 ? eval_batch_.mask.data() : eval_batch_.fields[field].data());
  }
  LS_RETURN_IF_ERROR(eval_plan_->RunPass(inputs, {.seed = config_.seed, .step = step}));
  int slot = 0;
  for (const char* name : {kLossSum, kLossDenominator}) {
    float value = 0;
    LS_RETURN_IF_ERROR(
        eval_plan_->ReadOutput(eval_plan_->FindOutput(name), {reinterpret_cast<std::byte*>(&value), sizeof value}));
    slots[slot++] = SlotOf(static_cast<double>(value));
  }
  if (!config_.evaluation.has_accuracy) return slots;
  for (const char* name : {kCorrectCount, kTop5Count, kLabelCount}) {
    int64_t value = 0;
    LS_RETURN_IF_ERROR(
        eval_plan_->ReadOutput(eval_plan_->FindOutput(name), {reinterpret_cast<std::byte*>(&value), sizeof value}));
    slots[slot++] = SlotOf(static_cast<double>(value));
  }
  return slots;
}

absl::StatusOr<SliceOutcome> StepRunner::RunSlice(Communicator& communicator, int64_t step, int64_t slice,
                                                  const ControlContribution& slot) {
  LS_CHECK(eval_plan_ != nullptr, "only a job that evaluates has slices");
  LS_RETURN_IF_ERROR(EnsureCurrent(*eval_plan_, eval_stale_));
  const Tag tag{step, kSliceAttempt + static_cast<uint32_t>(slice)};
  const WordShape shape{.generation = communicator.generation(),
                        .ranks = communicator.size(),
                        .logical_shards = config_.logical_shards,
                        .tensors = 0,
                        .slots_per_shard = kEvalSlots};
  RankWord word{.tag = tag, .control = slot};
  const ShardRange shards = ShardsOf(communicator.rank(), communicator.size(), config_.logical_shards);
  for (int k = shards.first; k < shards.last; ++k) {
    if (cancelled_) return absl::CancelledError("computing was stopped");
    LS_RETURN_IF_ERROR(communicator.status());
    LS_ASSIGN_OR_RETURN(const std::vector<uint64_t> slots, EvaluateBatch(step, slice * config_.logical_shards + k));
    word.slots.insert(word.slots.end(), slots.begin(), slots.end());
  }
  const std::vector<int64_t> sizes = WordBlockBytes(shape);
  std::vector<char> blocks(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
  LS_RETURN_IF_ERROR(PackWord(shape, communicator.rank(), word, absl::MakeSpan(blocks)));
  const Handle handle = communicator.AllGather(tag, absl::MakeSpan(blocks), sizes);
  LS_RETURN_IF_ERROR(WaitFor(*handle, config_.pulse));
  LS_ASSIGN_OR_RETURN(const ReducedWord reduced, FoldWords(shape, blocks));
  SliceOutcome outcome{.word = reduced.control};
  outcome.result.slice = slice;
  int s = 0;
  std::apply([&](auto&... field) { ((field = SumSlots(shape, reduced, s++)), ...); }, outcome.result.sums.Fields());
  return outcome;
}

}  // namespace lockstep::worker
