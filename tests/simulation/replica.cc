#include "tests/simulation/replica.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/random.h"

namespace lockstep::simulation {

ReplicaState InitialState(const TinyJob& job) {
  ReplicaState state;
  for (int i = 0; i < kWeights; ++i) state.weights[i] = Mix(job.seed * 31 + i);
  return state;
}

uint64_t DigestOf(const ReplicaState& state) {
  uint64_t digest = Mix(static_cast<uint64_t>(state.step));
  for (uint64_t weight : state.weights) digest = Mix(digest ^ weight);
  return digest;
}

std::string DigestText(const ReplicaState& state) { return absl::StrCat(absl::Hex(DigestOf(state), absl::kZeroPad16)); }

int64_t Shuffle::SampleAt(int64_t position) {
  const int64_t n = job_.samples;
  if (const int64_t epoch = position / n; epoch != epoch_) {
    epoch_ = epoch;
    // An affine map modulo the size is a permutation when the factor has no divisor in common with it.
    const uint64_t key = Mix(job_.seed ^ Mix(epoch));
    auto divisor = [](int64_t a, int64_t b) {
      while (b != 0) a = std::exchange(b, a % b);
      return a;
    };
    factor_ = 1 + static_cast<int64_t>(key % n);
    while (divisor(factor_, n) != 1) ++factor_;
    shift_ = static_cast<int64_t>((key >> 32) % n);
  }
  return (factor_ * (position % n) + shift_) % n;
}

Weights ShardGradient(const TinyJob& job, Shuffle& shuffle, const ReplicaState& state, int shard) {
  const int64_t size = job.global_batch / job.logical_shards;
  const int64_t first = state.step * job.global_batch + shard * size;
  Weights gradient{};
  for (int64_t position = first; position < first + size; ++position) {
    const uint64_t sample = static_cast<uint64_t>(shuffle.SampleAt(position));
    for (int i = 0; i < kWeights; ++i) gradient[i] += Mix(state.weights[i] ^ Mix(sample * kWeights + i));
  }
  return gradient;
}

void AddTo(Weights& sum, const Weights& gradient) {
  for (int i = 0; i < kWeights; ++i) sum[i] += gradient[i];
}

void Apply(ReplicaState& state, const Weights& sum, uint64_t rate_cuts) {
  for (int i = 0; i < kWeights; ++i) state.weights[i] = Mix(state.weights[i] + (3 + 2 * rate_cuts) * sum[i]);
  ++state.step;
}

EvaluationSums SliceSums(const ReplicaState& state, uint64_t slice) {
  // Small integers, so that sums are exact and equal losses come as well.
  return {.loss = static_cast<double>(Mix(DigestOf(state) ^ (slice + 1)) % 16), .denominator = 1};
}

Weights Reference::GradientAt(const ReplicaState& state, int shard) const {
  if (state.step >= 0 && state.step < end_step() && at(state.step) == state) {
    return gradients_[static_cast<size_t>(state.step * job_.logical_shards + shard)];
  }
  Shuffle shuffle(job_);
  return ShardGradient(job_, shuffle, state, shard);
}

Reference::Reference(const TinyJob& job, const TrainingPolicy& policy) : job_(job) {
  Shuffle shuffle(job);
  states_.reserve(static_cast<size_t>(job.steps) + 1);
  gradients_.reserve(static_cast<size_t>(job.steps * job.logical_shards));
  states_.push_back(InitialState(job));
  while (states_.back().step < job.steps) {
    ReplicaState next = states_.back();
    Weights sum{};
    for (int shard = 0; shard < job.logical_shards; ++shard) {
      gradients_.push_back(ShardGradient(job, shuffle, states_.back(), shard));
      AddTo(sum, gradients_.back());
    }
    Apply(next, sum, ledger_.rate_cuts);
    states_.push_back(next);
    const uint64_t step = static_cast<uint64_t>(next.step);
    if (!EvaluationDue(policy, step)) continue;
    EvaluationSums sums;
    for (uint64_t slice = 0; slice < policy.eval_slices; ++slice) sums += SliceSums(next, slice);
    ledger_ = Judge(policy.evaluation, ledger_, step, sums);
    if (EndsAt(policy, step, ledger_)) break;
  }
}

}  // namespace lockstep::simulation
