// Stages 4 to 6: computes one step of the job on this replica, or one slice of its evaluation, together with the other
// ranks of a generation.
//
// A step queues the logical shards of this rank on the device, reduces their gradients and the control word with the
// other ranks, and only then, past the host gate, updates the state: after the word of an attempt was folded, every
// rank decides alike whether that attempt counts, is made again with other exponents (at most once), or may not be
// applied. The gate is the one wait for the device in a step, but for a redo and for native sums; inputs apart, which
// the host may not change before the device has taken them. What comes behind the gate is queued, the norm for clipping
// included.
//
// The first step of a generation begins with an exchange of claims (shard_claims.h): a rank whose attempt at this step
// was broken does not compute again what it had finished.
//
// Invariants
//   * Nothing before the gate writes the state; from the gate on nothing fails but the device itself, and a step whose
//     update could not be queued ends with an error that no retry mends.
//   * The state after a step is a function of the state before, the metagraph, the data and the kernel plan: not of
//     ranks, their number, or of which attempt counted.
// Threading: owned by the engine thread. Cancel and progress are thread-safe.
#ifndef LOCKSTEP_WORKER_STEP_STEP_RUNNER_H_
#define LOCKSTEP_WORKER_STEP_STEP_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/graph/metagraph.h"
#include "common/graph/passes/training_graph.h"
#include "common/protocol/control.h"
#include "common/protocol/messages.h"
#include "common/sync/pulse.h"
#include "common/tensor/poison.h"
#include "worker/collectives/communicator.h"
#include "worker/data/augmentation.h"
#include "worker/data/batch_reader.h"
#include "worker/data/data_source.h"
#include "worker/device/device.h"
#include "worker/device/mirrored_buffer.h"
#include "worker/device/step_math.h"
#include "worker/inference/evaluation_pass.h"
#include "worker/plan/input_staging.h"
#include "worker/plan/plan.h"
#include "worker/profile/profiler.h"
#include "worker/step/gradient_exchange.h"
#include "worker/step/parameter_updates.h"
#include "worker/step/replica_state.h"
#include "worker/step/shard_claims.h"

namespace lockstep::worker {

// The tag of an exchange of claims, apart from those of attempts, of slices and of the transfer of state.
inline constexpr uint32_t kClaimAttempt = 0x20000000u;

// What the metagraph and the job fix about stepping.
struct StepConfig {
  MetaGraph metagraph;
  TrainingGraph training;
  EvaluationGraph evaluation;
  uint64_t seed = 0;
  int64_t global_batch = 0;
  int logical_shards = 1;
  int64_t eval_batch = 0;                      // 0: the job does not evaluate
  Pulse* pulse = nullptr;                      // shows when a peer is waited for; null: nobody watches
  Profiler* profiler = nullptr;                // keeps where the time goes; null: nobody asks
  device::Device* device = nullptr;            // of the plans and the state
  bool poison = kPoisonsMemory;                // batches before they are read
  const Augmentation* augmentation = nullptr;  // what becomes of training images; null: they stay
};

// Where time went, in total since construction.
struct StepTimes {
  absl::Duration compute;     // passes and quantisation
  absl::Duration all_reduce;  // waiting for the other ranks after the last pass
  absl::Duration data;
  absl::Duration update;
  int64_t samples = 0;
  int64_t redone = 0;  // attempts that were made again
  int64_t shards = 0;  // logical shards computed in first attempts, to their end

  StepTimes& operator+=(const StepTimes& other);
};

// Of the mean gradient of a step, before it was clipped.
struct GradientNorm {
  int64_t step = 0;
  double value = 0;
  friend bool operator==(const GradientNorm&, const GradientNorm&) = default;
};

struct StepResult {
  bool applied = true;  // false: on_nan says stop, nothing was updated
  ControlWord word;
  StepRecord record;
  std::string message;  // which tensor, when not finite
  // Where the rule clips: of the newest update before this one.
  std::optional<GradientNorm> norm;
};

struct SliceOutcome {
  ControlWord word;
  SliceResult result;
};

class StepRunner {
 public:
  // The plans are of config's graphs and bound to the variables of `state`; all pointers outlive the runner. `eval` and
  // `eval_plan` are null when the job does not evaluate. ResourceExhausted when memory does not suffice. Internal when
  // an input of a plan is fed by no field of the data, or by one of another size.
  static absl::StatusOr<std::unique_ptr<StepRunner>> Make(StepConfig config, ReplicaState* state, Plan* training_plan,
                                                          Plan* eval_plan, const DataSource* train,
                                                          const DataSource* eval);

  // Computes the step to `step`; `rate_cuts`: EvaluationLedger::rate_cuts of the state. REQUIRES: the state stands at
  // step - 1. An error means that a collective was broken or a pass was cancelled: the state is what it was. Internal:
  // a pass failed, which no retry mends.
  absl::StatusOr<StepResult> RunStep(Communicator& communicator, int64_t step, const ControlContribution& slot,
                                     int64_t rate_cuts = 0);

  // Evaluates slice `slice` of the evaluation of the state as it stands.
  absl::StatusOr<SliceOutcome> RunSlice(Communicator& communicator, int64_t step, int64_t slice,
                                        const ControlContribution& slot);

  // The state was replaced (restore, transfer): whatever was derived from it is made anew.
  void StateReplaced();

  // While true, passes end early. Thread-safe.
  void Cancel(bool cancel);
  // Nodes executed since construction. Thread-safe.
  uint64_t nodes_executed() const;
  StepTimes times() const;
  // What it was made with.
  const StepConfig& config() const { return config_; }

 private:
  struct Verdict;
  static constexpr int kFirstStatisticSlot = 2;

  StepRunner(StepConfig config, ReplicaState* state, Plan* training_plan, Plan* eval_plan, const DataSource* train,
             const DataSource* eval);

  // step_tables.cc: what the arithmetic of a step needs, made once.
  absl::Status MakeTables();
  absl::Status MakeUpdateTables();
  absl::Status MakeOutputTables();

  float* clip_factor() const { return reinterpret_cast<float*>(squares_.on_device()) + 2 * parameters_.size(); }
  // Losses, denominators, then every element of a statistic.
  int slots_per_shard() const;
  absl::Status EnsureCurrent(Plan& plan, bool& stale);
  // step_inputs.cc: batches on their way to the passes.
  absl::Status FindFields(const DataSource& train);
  absl::Status MakeReader(const DataSource& train);
  absl::Status Seek(int64_t step, const std::vector<int>& shards);
  absl::Status NextBatch();
  std::vector<InputBytes> InputsOf(int64_t pass) const;
  absl::Status QueuePass(int64_t pass, const PassKey& key, Plan::BucketReady on_bucket);
  absl::Status StageNext(int64_t pass);

  absl::Status RunShards(Communicator& communicator, Tag tag);
  absl::Status RunShard(int64_t step, int logical_shard);
  absl::StatusOr<ShardAssignment> AgreeOnShards(Communicator& communicator, int64_t step);
  absl::StatusOr<ReducedWord> Attempt(Communicator& communicator, Tag tag, const ControlContribution& slot,
                                      ShardAssignment shards);
  absl::StatusOr<Verdict> JudgeWord(const ReducedWord& word);
  absl::Status Update(const UpdatePlace& place, const ReducedWord& word, double denominator);
  absl::Status FindClip(int64_t step, double denominator);
  // What FindClip left. REQUIRES: the device has done what was queued then.
  std::optional<GradientNorm> NewestNorm() const;
  absl::Status MoveStatistics(const ReducedWord& word);

  const StepConfig config_;
  ReplicaState* const state_;
  Plan* const plan_;
  Plan* const eval_plan_;
  const DataSource* const eval_;
  std::unique_ptr<EvaluationPass> evaluation_;  // null: the job does not evaluate
  const SampleStream stream_;
  device::StepMath& math_;
  std::unique_ptr<GradientExchange> exchange_;

  std::vector<ParameterIndex> parameters_;  // per tensor of the gradient layout
  std::vector<int> declared_order_;  // of the gradient layout's tensors: their place among the metagraph's variables
  std::vector<int> input_fields_;    // per plan input: the data source's field
  std::vector<int64_t> statistic_sizes_;
  int64_t passes_ = 1;  // of a shard
  std::unique_ptr<device::OutputTable> outputs_;
  std::optional<ParameterUpdates> updates_;
  std::unique_ptr<device::StatisticTable> statistics_;                 // null: the model has none
  device::MirroredBuffer means_;                                       // float64 per element of a statistic
  std::vector<std::unique_ptr<device::TensorTable>> declared_tables_;  // by bucket; indices in the declared order
  device::MirroredBuffer squares_;                                     // float64 per tensor, then the factor that clips
  // The step whose squares those are, and what its gradient is divided by; none: they mean nothing.
  std::optional<std::pair<int64_t, double>> squares_of_;

  // Where the host sees the device's memory, passes read the reader's batches themselves, and `staging_` is null. Else
  // batches lie in pinned blocks, and the inputs of the next pass are copied ahead, as far as its batch was read.
  std::vector<std::unique_ptr<device::Buffer>> blocks_;
  std::unique_ptr<InputStaging> staging_;
  std::unique_ptr<BatchReader> reader_;
  const Batch* batch_ = nullptr;  // that the reader handed out last
  bool took_ahead_ = false;       // it is the one after that of the newest pass
  bool staged_ = false;           // the next pass's inputs are on their way
  int64_t next_step_ = -1;        // what comes next, for `reader_shards_`
  std::vector<int> reader_shards_;

  std::vector<int32_t> exponents_;
  Generation entered_;  // the newest that has agreed on its shards
  bool training_stale_ = true;
  bool eval_stale_ = true;
  std::atomic<bool> cancelled_{false};
  StepTimes times_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_STEP_RUNNER_H_
