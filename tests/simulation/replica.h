// A replica that is small enough to simulate: a few integers that stand for the weights, updated from samples.
//
// Every sample of a step changes every later value, so a step that is lost, repeated, computed from other samples, or
// applied to another state leaves other bits. The state at step s depends on s alone: `Reference` has the states of an
// undisturbed run.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_REPLICA_H_
#define LOCKSTEP_TESTS_SIMULATION_REPLICA_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/protocol/training_policy.h"

namespace lockstep::simulation {

inline constexpr int kWeights = 3;
using Weights = std::array<uint64_t, kWeights>;

// The parameters of a simulated job.
struct TinyJob {
  int64_t samples = 24;  // in the data set; one epoch
  int64_t global_batch = 8;
  int logical_shards = 4;
  int64_t steps = 40;
  uint64_t seed = 7;
};

struct ReplicaState {
  int64_t step = 0;
  Weights weights{};

  friend bool operator==(const ReplicaState&, const ReplicaState&) = default;
};

ReplicaState InitialState(const TinyJob& job);
// Covers the step and the weights.
uint64_t DigestOf(const ReplicaState& state);
// The digest in the form that the cores use.
std::string DigestText(const ReplicaState& state);

// The data-set index at a position of the endless stream: a permutation of its own for each epoch.
class Shuffle {
 public:
  explicit Shuffle(const TinyJob& job) : job_(job) {}
  int64_t SampleAt(int64_t position);

 private:
  const TinyJob job_;
  // Permutation of the newest epoch that was used.
  int64_t epoch_ = -1;
  int64_t factor_ = 1;
  int64_t shift_ = 0;
};

// The gradient of one logical shard at `state`, for the step that follows it.
Weights ShardGradient(const TinyJob& job, Shuffle& shuffle, const ReplicaState& state, int shard);
void AddTo(Weights& sum, const Weights& gradient);
// Applies the update with `sum` over all logical shards, at a learning rate that was cut `rate_cuts` times.
void Apply(ReplicaState& state, const Weights& sum, uint64_t rate_cuts);

// The sums of one evaluation slice of `state`. Losses are arbitrary, so the best one may come at any time.
EvaluationSums SliceSums(const ReplicaState& state, uint64_t slice);

// An undisturbed run: its states, one per step from 0 to the last, and its ledger at the end.
class Reference {
 public:
  Reference(const TinyJob& job, const TrainingPolicy& policy);
  const ReplicaState& at(int64_t step) const { return states_[step]; }
  int64_t end_step() const { return static_cast<int64_t>(states_.size()) - 1; }
  const EvaluationLedger& ledger() const { return ledger_; }
  // ShardGradient, cached for states of this run.
  Weights GradientAt(const ReplicaState& state, int shard) const;

 private:
  const TinyJob job_;
  std::vector<ReplicaState> states_;
  std::vector<Weights> gradients_;  // of every shard at every state but the last one
  EvaluationLedger ledger_;         // at the end
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_REPLICA_H_
