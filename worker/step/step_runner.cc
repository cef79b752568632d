#include "worker/step/step_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/graph/schedule.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/arithmetic/exact_sum.h"
#include "worker/arithmetic/optimizer.h"
#include "worker/device/device_lost.h"

namespace lockstep::worker {
namespace {

constexpr int kLossSlot = 0;
constexpr int kDenominatorSlot = 1;

// Adds the time until its end to `total`.
class Timed {
 public:
  explicit Timed(absl::Duration& total) : total_(total), begin_(SteadyNow()) {}
  ~Timed() { total_ += SteadyNow() - begin_; }

 private:
  absl::Duration& total_;
  const absl::Time begin_;
};

std::vector<int64_t> StatisticSizes(const StepConfig& config) {
  std::vector<int64_t> sizes;
  for (const StatisticUpdate& update : config.training.statistics) {
    sizes.push_back(NumElements(config.training.graph.values.at(update.value).shape));
  }
  return sizes;
}

}  // namespace

StepRunner::StepRunner(StepConfig config, ReplicaState* state, Plan* training_plan, const DataSource* train)
    : config_(std::move(config)),
      state_(state),
      plan_(training_plan),
      stream_(config_.seed, train->num_samples()),
      math_(config_.device->step_math()),
      statistic_sizes_(StatisticSizes(config_)),
      passes_(config_.global_batch / config_.logical_shards / config_.metagraph.pass_batch) {
  LS_CHECK(plan_->keeps_gradients() ||
               !GradientExchange::TakesAsItIs(config_.logical_shards, config_.metagraph.update.reduction),
           "gradients that are not copied stay until the update");
  parameters_ = IndexParameters(config_.metagraph.update, state_->layout(), plan_->gradient_parameters());
  for (const ParameterIndex& index : parameters_) {
    declared_order_.push_back(
        static_cast<int>(std::count_if(parameters_.begin(), parameters_.end(),
                                       [&](const ParameterIndex& other) { return other.value < index.value; })));
  }
  exponents_.resize(parameters_.size());
}

StepTimes& StepTimes::operator+=(const StepTimes& other) {
  compute += other.compute;
  all_reduce += other.all_reduce;
  data += other.data;
  update += other.update;
  samples += other.samples;
  redone += other.redone;
  shards += other.shards;
  return *this;
}

void StepRunner::StateReplaced() {
  training_stale_ = true;
  eval_stale_ = true;
  next_step_ = -1;
  squares_of_.reset();
  exchange_->DropSums();
}

void StepRunner::Cancel(bool cancel) {
  cancelled_ = cancel;
  plan_->Cancel(cancel);
  if (evaluation_ == nullptr) return;
  for (Plan* const plan : evaluation_->plans()) plan->Cancel(cancel);
}

uint64_t StepRunner::nodes_executed() const {
  uint64_t executed = plan_->nodes_executed();
  if (evaluation_ != nullptr) {
    for (const Plan* const plan : evaluation_->plans()) executed += plan->nodes_executed();
  }
  return executed;
}

StepTimes StepRunner::times() const {
  StepTimes times = times_;
  times.data = reader_->waited();
  return times;
}

// One word and its meaning for the attempt.
struct StepRunner::Verdict {
  bool redo = false;
  int non_finite = -1;  // the first such tensor of the gradient layout
  int more_non_finite = 0;
};

absl::StatusOr<StepResult> StepRunner::RunStep(Communicator& communicator, int64_t step,
                                               const ControlContribution& slot, int64_t rate_cuts) {
  LS_CHECK(state_->step() == step - 1, "a step follows the one before");
  if (training_stale_) LS_RETURN_IF_ERROR(plan_->RefreshVariables());
  training_stale_ = false;
  for (size_t t = 0; t < parameters_.size(); ++t) {
    const int exponent = parameters_[t].exponent;
    exponents_[t] = exponent >= 0 ? state_->exponent(exponent) : kExponentUnset;
  }

  LS_ASSIGN_OR_RETURN(ShardAssignment shards, AgreeOnShards(communicator, step));
  absl::Status begun = exchange_->Begin(communicator, {step, 0}, exponents_, std::move(shards));
  LS_ASSIGN_OR_RETURN(ReducedWord word, Attempt(communicator, {step, 0}, slot, begun));
  LS_ASSIGN_OR_RETURN(Verdict verdict, JudgeWord(word));
  if (verdict.redo) {
    ++times_.redone;
    begun = exchange_->BeginAgain(exponents_);
    LS_ASSIGN_OR_RETURN(word, Attempt(communicator, {step, 1}, slot, begun));
    LS_ASSIGN_OR_RETURN(verdict, JudgeWord(word));
    LS_CHECK(!verdict.redo, "the exponents of a redo fit");
  }

  // The gate: every bucket is reduced, the word is read, every rank comes to the same decision.
  StepResult result;
  result.word = word.control;
  result.norm = NewestNorm();
  const WordShape shape{.ranks = communicator.size(),
                        .logical_shards = config_.logical_shards,
                        .tensors = static_cast<int>(parameters_.size()),
                        .slots_per_shard = slots_per_shard()};
  const double denominator = SumSlots(shape, word, kDenominatorSlot);
  result.record.step = step;
  result.record.loss = SumSlots(shape, word, kLossSlot) / denominator;
  const UpdatePlace place{step - 1, rate_cuts};
  result.record.learning_rate = LearningRate(config_.metagraph.update.schedule, place.step, place.rate_cuts);
  // The mean over no label is 0 / 0, and so would be every parameter.
  const bool nothing_counts = denominator == 0;
  if (nothing_counts) {
    result.message = absl::StrCat("no label counts at step ", step,
                                  ": all are model.ignore_index or of classes without weight, so the loss is 0 / 0");
  } else if (verdict.non_finite >= 0) {
    result.message = absl::StrCat("the gradient of '", plan_->gradient_parameters()[verdict.non_finite],
                                  "' is not finite at step ", step);
    if (verdict.more_non_finite > 0) {
      absl::StrAppend(&result.message, ", nor are those of ", verdict.more_non_finite, " other tensors");
    }
  }
  switch (DecideOnNan(config_.metagraph.update.on_nan, nothing_counts || verdict.non_finite >= 0)) {
    case NanAction::kStop:
      if (!nothing_counts) {
        absl::StrAppend(&result.message,
                        "; lower train.optimizer.lr, bound the gradients with train.clip_norm, or let ",
                        "such a step change nothing with train.on_nan: skip_step");
      }
      result.applied = false;
      return result;
    case NanAction::kSkip:
      result.record.skipped = true;
      break;
    case NanAction::kApply:
      if (const absl::Status updated = Update(place, word, denominator); !updated.ok()) {
        return device::MarkedAs(updated, absl::InternalError(absl::StrCat("the update of step ", step,
                                                                          " failed, and what this replica holds is ",
                                                                          "void: ", updated.message())));
      }
      break;
  }
  state_->set_step(step);
  return result;
}

// Every rank of a generation enters it with the same step, so all exchange claims, or none.
absl::StatusOr<ShardAssignment> StepRunner::AgreeOnShards(Communicator& communicator, int64_t step) {
  const int ranks = communicator.size();
  const bool claims = config_.metagraph.update.reduction == ReductionMode::kExact && config_.logical_shards > 1;
  if (!claims || communicator.generation() == entered_) return AssignShards(ranks, config_.logical_shards);
  const int64_t each = ClaimBytes(config_.logical_shards);
  std::vector<char> bytes(static_cast<size_t>(each * ranks));
  const auto own = absl::MakeSpan(bytes).subspan(static_cast<size_t>(each * communicator.rank()), each);
  PackClaim(exchange_->Claim({step, 0}, exponents_), config_.logical_shards, own);
  const Handle handle =
      communicator.AllGather({step, kClaimAttempt}, absl::MakeSpan(bytes), std::vector<int64_t>(ranks, each));
  LS_RETURN_IF_ERROR(WaitFor(*handle, config_.pulse));
  LS_ASSIGN_OR_RETURN(const std::vector<ShardClaim> heard, UnpackClaims(ranks, config_.logical_shards, bytes));
  entered_ = communicator.generation();
  return AssignShards(heard, config_.logical_shards);
}

absl::StatusOr<ReducedWord> StepRunner::Attempt(Communicator& communicator, Tag tag, const ControlContribution& slot,
                                                const absl::Status& begun) {
  absl::Status passes = begun;
  if (passes.ok()) {
    Timed timed(times_.compute);
    passes = RunShards(communicator, tag);
    if (passes.ok()) passes = exchange_->WaitForPasses();
  }
  Timed timed(times_.all_reduce);
  return exchange_->Finish(slot, passes);
}

absl::Status StepRunner::RunShards(Communicator& communicator, Tag tag) {
  const std::vector<int> shards = exchange_->shards();
  if (shards.empty()) return absl::OkStatus();
  if (next_step_ != tag.step || tag.attempt != 0 || shards != reader_shards_) {
    LS_RETURN_IF_ERROR(Seek(tag.step, shards));
  }
  next_step_ = -1;  // until every batch of this step was taken
  for (const int k : shards) {
    if (cancelled_) return absl::CancelledError("computing was stopped");
    LS_RETURN_IF_ERROR(communicator.status());
    if (!std::exchange(took_ahead_, false)) LS_RETURN_IF_ERROR(NextBatch());
    LS_CHECK(batch_->step == tag.step && batch_->logical_shard == k, "batches come in order");
    if (tag.attempt == 0) times_.samples += static_cast<int64_t>(batch_->samples.size());
    LS_RETURN_IF_ERROR(RunShard(tag.step, k));
    LS_RETURN_IF_ERROR(exchange_->EndShard());
    if (tag.attempt == 0) ++times_.shards;
  }
  next_step_ = tag.step + 1;
  return absl::OkStatus();
}

absl::Status StepRunner::RunShard(int64_t step, int logical_shard) {
  LS_CHECK(static_cast<int64_t>(batch_->samples.size()) == passes_ * config_.metagraph.pass_batch,
           "a shard is a number of whole passes");
  double* const totals = exchange_->shard_totals();
  for (int64_t pass = 0; pass < passes_; ++pass) {
    const PassKey key{.seed = config_.seed, .step = step, .logical_shard = logical_shard, .pass = pass};
    const bool last = pass + 1 == passes_;
    LS_RETURN_IF_ERROR(QueuePass(pass, key, [&](int bucket) -> absl::Status {
      if (!last) return absl::OkStatus();
      return exchange_->AddBucket(bucket);
    }));
    LS_RETURN_IF_ERROR(math_.AddOutputs(plan_->stream(), *outputs_, totals));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepRunner::Verdict> StepRunner::JudgeWord(const ReducedWord& word) {
  Verdict verdict;
  if (config_.metagraph.update.reduction == ReductionMode::kFast) {
    // Native sums may overflow on the way: the gathered values themselves are looked at, equal on every rank.
    LS_ASSIGN_OR_RETURN(verdict.non_finite, exchange_->FirstNonFinite());
    return verdict;
  }
  for (size_t t = 0; t < parameters_.size(); ++t) {
    if (!IsNonFinite(word.magnitudes[t])) continue;
    if (verdict.non_finite >= 0) {
      ++verdict.more_non_finite;
    } else {
      verdict.non_finite = static_cast<int>(t);
    }
  }
  // Beats every overflow: nothing is summed again.
  if (verdict.non_finite >= 0 || config_.logical_shards == 1) return verdict;
  for (size_t t = 0; t < parameters_.size(); ++t) {
    if (Judge(word.magnitudes[t], exponents_[t]) != TensorVerdict::kRedo) continue;
    exponents_[t] = FittingExponent(word.magnitudes[t]);
    verdict.redo = true;
  }
  return verdict;
}

}  // namespace lockstep::worker
