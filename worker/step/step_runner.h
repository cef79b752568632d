// Stages 4 to 6: computes one step of the job on this replica, or one slice of its evaluation, together with the other
// ranks of a generation.
//
// A step queues the passes of this rank's logical shards on the device, reduces the gradients and the control word with
// the other ranks, and then, behind the gate, updates the state. At the gate the host waits for the folded control
// word, by which all ranks decide alike whether the attempt counts, is repeated with other exponents (at most once), or
// must not be applied. The gate is the only wait for the device in a step, except for a redo, for native sums, and for
// inputs, which the host must not change before the device has taken them. The work behind the gate is only queued,
// including the norm for clipping.
//
// The first step of a generation begins with an exchange of claims (shard_claims.h): a rank whose previous attempt at
// this step broke does not recompute the shards that it had finished.
//
// Invariants
//   * Nothing before the gate writes the state. Behind the gate only the device can fail; a step whose update cannot be
//     queued ends with an error that no retry can fix.
//   * The state after a step is a function of the state before it, the metagraph, the data and the kernel plan. It does
//     not depend on the ranks, their number, or on which attempt counted.
//
// Threading: owned by the engine thread. Cancel and nodes_executed are thread-safe.
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
#include "worker/data/mixing.h"
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

// Tag::attempt of an exchange of claims; distinct from those of attempts, slices and state transfers.
inline constexpr uint32_t kClaimAttempt = 0x20000000u;

// The inputs of stepping that the metagraph and the job determine.
struct StepConfig {
  MetaGraph metagraph;
  TrainingGraph training;
  EvaluationGraph evaluation;
  uint64_t seed = 0;
  int64_t global_batch = 0;
  int logical_shards = 1;
  int64_t eval_batch = 0;                       // 0: the job does not evaluate
  Pulse* pulse = nullptr;                       // reports waits for peers; may be null
  Profiler* profiler = nullptr;                 // may be null
  device::Device* device = nullptr;             // of the plans and the state
  bool poison = kPoisonsMemory;                 // poisons batches before they are read
  const Augmentation* augmentation = nullptr;   // of training images; null: none
  const Mixing* mixing = nullptr;               // of their passes; null: none
  std::shared_ptr<SharedMemory> shared_memory;  // of GradientExchange::Options
};

struct StepPlans {
  Plan* training = nullptr;
  Plan* evaluation = nullptr;  // null: the job does not evaluate
  Plan* rest = nullptr;        // as EvaluationPass::Make takes it
};

// Totals since construction.
struct StepTimes {
  absl::Duration compute;     // passes and quantisation
  absl::Duration all_reduce;  // waiting for the other ranks after the last pass
  absl::Duration data;        // waiting for batches
  absl::Duration update;
  int64_t samples = 0;
  int64_t redone = 0;  // attempts that were repeated with other exponents
  int64_t shards = 0;  // logical shards completed in first attempts

  StepTimes& operator+=(const StepTimes& other);
};

// The Euclidean norm of the mean gradient of a step, before clipping.
struct GradientNorm {
  int64_t step = 0;
  double value = 0;
  friend bool operator==(const GradientNorm&, const GradientNorm&) = default;
};

struct StepResult {
  bool applied = true;  // false: `on_nan: stop`, nothing was updated
  ControlWord word;
  StepRecord record;
  std::string message;  // names the non-finite tensor, if any
  // If the rule clips: the norm of the latest update before this one.
  std::optional<GradientNorm> norm;
};

struct SliceOutcome {
  ControlWord word;
  SliceResult result;
};

class StepRunner {
 public:
  // The plans are of config's graphs and bound to the variables of `state`; all pointers outlive the runner. `eval` is
  // null if the job does not evaluate. ResourceExhausted when memory is exhausted. Internal when no field of the data
  // feeds an input of a plan, or one of another size.
  static absl::StatusOr<std::unique_ptr<StepRunner>> Make(StepConfig config, ReplicaState* state,
                                                          const StepPlans& plans, const DataSource* train,
                                                          const DataSource* eval);

  // Computes the step from state `step` - 1 to state `step`. `slot`: this rank's contribution to the control word;
  // `rate_cuts`: EvaluationLedger::rate_cuts of the state. After an error the state is unchanged: a collective broke or
  // a pass was cancelled, or, with Internal, a pass failed in a way that no retry can fix. Blocks. REQUIRES: the state
  // is at `step` - 1.
  absl::StatusOr<StepResult> RunStep(Communicator& communicator, int64_t step, const ControlContribution& slot,
                                     int64_t rate_cuts = 0);

  // Computes slice `slice` of the evaluation of the current state. Blocks.
  absl::StatusOr<SliceOutcome> RunSlice(Communicator& communicator, int64_t step, int64_t slice,
                                        const ControlContribution& slot);

  // Call after the state was replaced (restore, transfer): values derived from it are recomputed.
  void StateReplaced();

  // While true, passes end early. Thread-safe.
  void Cancel(bool cancel);
  // The number of nodes executed since construction. Thread-safe.
  uint64_t nodes_executed() const;
  StepTimes times() const;
  // The constructor's argument.
  const StepConfig& config() const { return config_; }

 private:
  struct Verdict;
  static constexpr int kFirstStatisticSlot = 2;

  StepRunner(StepConfig config, ReplicaState* state, Plan* training_plan, const DataSource* train);

  // step_tables.cc: StepMath's tables, made once.
  absl::Status MakeTables();
  absl::Status MakeUpdateTables();
  absl::Status MakeOutputTables();

  float* clip_factor() const { return reinterpret_cast<float*>(squares_.on_device()) + 2 * parameters_.size(); }
  // The slots of a shard: loss, denominator, then one per element of the model's statistics.
  int slots_per_shard() const;
  // step_inputs.cc: batches and their transfer to the device.
  absl::Status FindFields(const DataSource& train);
  absl::Status MakeEvaluation(const StepPlans& plans, const DataSource* eval);
  absl::Status MakeReader(const DataSource& train);
  absl::Status Seek(int64_t step, const std::vector<int>& shards);
  absl::Status NextBatch();
  std::vector<InputBytes> InputsOf(int64_t pass) const;
  absl::Status QueuePass(int64_t pass, const PassKey& key, Plan::BucketReady on_bucket);
  absl::Status StageNext(int64_t pass);

  absl::Status RunShards(Communicator& communicator, Tag tag);
  absl::Status RunShard(int64_t step, int logical_shard);
  absl::StatusOr<ShardAssignment> AgreeOnShards(Communicator& communicator, int64_t step);
  // Computes and reduces what the exchange has begun. `begun`: what that said.
  absl::StatusOr<ReducedWord> Attempt(Communicator& communicator, Tag tag, const ControlContribution& slot,
                                      const absl::Status& begun);
  absl::StatusOr<Verdict> JudgeWord(const ReducedWord& word);
  absl::Status Update(const UpdatePlace& place, const ReducedWord& word, double denominator);
  absl::Status FindClip(int64_t step, double denominator);
  // The norm by the latest FindClip. REQUIRES: the device has finished the work queued by it.
  std::optional<GradientNorm> NewestNorm() const;
  absl::Status MoveStatistics(const ReducedWord& word);

  const StepConfig config_;
  ReplicaState* const state_;
  Plan* const plan_;
  std::unique_ptr<EvaluationPass> evaluation_;  // null: the job does not evaluate
  const SampleStream stream_;
  device::StepMath& math_;
  std::unique_ptr<GradientExchange> exchange_;

  std::vector<ParameterIndex> parameters_;  // per tensor of the gradient layout
  std::vector<int> declared_order_;         // per tensor of the gradient layout: its rank in the order of the variables
  std::vector<int> input_fields_;           // per plan input: the data source's field
  std::vector<int64_t> statistic_sizes_;
  int64_t passes_ = 1;  // of a shard
  std::unique_ptr<device::OutputTable> outputs_;
  std::optional<ParameterUpdates> updates_;
  std::unique_ptr<device::StatisticTable> statistics_;                 // null: the model has none
  device::MirroredBuffer means_;                                       // float64 per element of a statistic
  std::vector<std::unique_ptr<device::TensorTable>> declared_tables_;  // by bucket; indices in the declared order
  device::MirroredBuffer squares_;  // sums of squares, float64 per tensor, then the clip factor
  // The step and the denominator of squares_; none: squares_ is not valid.
  std::optional<std::pair<int64_t, double>> squares_of_;

  // If the host can access device memory, passes read the reader's batches in place, and `staging_` is null. Otherwise
  // batches are in pinned blocks, and the inputs of the next pass are copied ahead if its batch has been read.
  std::vector<std::unique_ptr<device::Buffer>> blocks_;
  std::unique_ptr<InputStaging> staging_;
  std::unique_ptr<BatchReader> reader_;
  const Batch* batch_ = nullptr;  // the last batch of reader_
  bool took_ahead_ = false;       // batch_ is for the next pass, not for the latest one
  bool staged_ = false;           // the copies of the next pass's inputs are queued
  int64_t next_step_ = -1;        // the step that reader_ delivers next, for reader_shards_
  std::vector<int> reader_shards_;

  std::vector<int32_t> exponents_;
  Generation entered_;  // the latest generation that has agreed on an assignment of shards
  bool training_stale_ = true;
  bool eval_stale_ = true;
  std::atomic<bool> cancelled_{false};
  StepTimes times_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_STEP_RUNNER_H_
