// StepRunner past the gate: the update of the state, and evaluation.
#include <cmath>
#include <numeric>
#include <tuple>

#include "common/clock/clock.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/arithmetic/exact_sum.h"
#include "worker/arithmetic/optimizer.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {
namespace {

// The tag of an evaluation slice is apart from those of a step's attempts.
constexpr uint32_t kSliceAttempt = 0x80000000u;
// One per field of EvaluationSums, in its order.
constexpr int kEvalSlots = 5;

}  // namespace

absl::Status StepRunner::Update(const UpdatePlace& place, const ReducedWord& word, double denominator) {
  const Profiler::Scope scope(config_.profiler, ProfileTrack::kUpdate, "(update)");
  const absl::Time begin = SteadyNow();
  const UpdateRule& rule = config_.metagraph.update;
  device::Stream& stream = plan_->stream();
  LS_RETURN_IF_ERROR(state_->BeginWrite(stream));
  const float* clip = nullptr;
  if (rule.clip_global_norm.has_value()) {
    LS_RETURN_IF_ERROR(FindClip(place.step + 1, denominator));
    clip = clip_factor();
  }
  LS_RETURN_IF_ERROR(updates_->Queue(stream, place, denominator, /*norm=*/0, clip));
  if (rule.reduction == ReductionMode::kExact && config_.logical_shards > 1) {
    for (size_t t = 0; t < parameters_.size(); ++t) {
      state_->set_exponent(parameters_[t].exponent, NextExponent(word.magnitudes[t], exponents_[t]));
    }
  }
  LS_RETURN_IF_ERROR(MoveStatistics(word));
  LS_RETURN_IF_ERROR(state_->EndWrite(stream));
  training_stale_ = true;
  eval_stale_ = true;
  times_.update += SteadyNow() - begin;
  return absl::OkStatus();
}

absl::Status StepRunner::FindClip(int64_t step, double denominator) {
  device::Stream& stream = plan_->stream();
  auto* const squares = reinterpret_cast<double*>(squares_.on_device());
  const std::vector<Bucket>& buckets = plan_->gradient_layout().buckets();
  for (size_t b = 0; b < buckets.size(); ++b) {
    // A bucket begins with its first tensor.
    const float* const values = exchange_->gradient(buckets[b].first_tensor);
    LS_RETURN_IF_ERROR(math_.SumSquares(stream, *declared_tables_[b], values, squares));
  }
  squares_of_ = {step, denominator};
  LS_RETURN_IF_ERROR(squares_.ToHost(stream, 0, parameters_.size() * sizeof(double)));
  return math_.FindClip(stream, squares, static_cast<int64_t>(parameters_.size()), denominator,
                        *config_.metagraph.update.clip_global_norm, clip_factor());
}

std::optional<GradientNorm> StepRunner::NewestNorm() const {
  if (!squares_of_.has_value()) return std::nullopt;
  const auto& [step, denominator] = *squares_of_;
  const auto* const squares = reinterpret_cast<const double*>(squares_.on_host());
  return GradientNorm{step, std::sqrt(std::accumulate(squares, squares + parameters_.size(), 0.0)) / denominator};
}

absl::Status StepRunner::MoveStatistics(const ReducedWord& word) {
  if (statistics_ == nullptr) return absl::OkStatus();
  auto* means = reinterpret_cast<double*>(means_.on_host());
  const int slots = slots_per_shard();
  for (int slot = kFirstStatisticSlot; slot < slots; ++slot) {
    double mean = 0;
    for (int k = 0; k < config_.logical_shards; ++k) mean += DoubleOf(word.slots[k * slots + slot]);
    *means++ = mean / config_.logical_shards;
  }
  LS_RETURN_IF_ERROR(means_.ToDevice(plan_->stream(), 0, means_.size()));
  return math_.MoveStatistics(plan_->stream(), *statistics_, reinterpret_cast<const double*>(means_.on_device()));
}

absl::StatusOr<SliceOutcome> StepRunner::RunSlice(Communicator& communicator, int64_t step, int64_t slice,
                                                  const ControlContribution& slot) {
  LS_CHECK(evaluation_ != nullptr, "only a job that evaluates has slices");
  for (Plan* const plan : evaluation_->plans()) LS_RETURN_IF_ERROR(state_->BeginRead(plan->stream()));
  if (eval_stale_) LS_RETURN_IF_ERROR(evaluation_->RefreshVariables());
  eval_stale_ = false;
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
    LS_ASSIGN_OR_RETURN(EvaluationSums sums, evaluation_->Run(step, slice * config_.logical_shards + k));
    std::apply([&](auto&... field) { (word.slots.push_back(SlotOf(field)), ...); }, sums.Fields());
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
