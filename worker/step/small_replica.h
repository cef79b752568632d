// A small model that uses all features of a step (dropout, batch norm, clipping, averages), synthetic data, and a
// replica of it without a session, for tests.
//
// Threading: a replica is owned by the thread that makes it. Failures are reported by LS_CHECK, since tests make ranks
// on several threads and the test framework's assertions are not thread-safe.
#ifndef LOCKSTEP_WORKER_STEP_SMALL_REPLICA_H_
#define LOCKSTEP_WORKER_STEP_SMALL_REPLICA_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/initial_state.h"
#include "common/status/check.h"
#include "worker/device/choice/devices.h"
#include "worker/fakes/deferred_device.h"
#include "worker/step/gradient_memory.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {

constexpr int kShards = 4;
constexpr int64_t kBatch = 16;
constexpr int64_t kFeatures = 6;

// Synthetic samples, a function of their index, with `classes` classes; sample `poisoned` has non-finite values.
class MadeUpData final : public DataSource {
 public:
  // `feature`: the name of the feature, which may equal the label's.
  explicit MadeUpData(int64_t poisoned = -1, int64_t classes = 3, const std::string& feature = "inputs")
      : poisoned_(poisoned),
        classes_(classes),
        fields_{{feature, DType::kF32, {kFeatures}}, {"labels", DType::kI64, {}}} {}
  int64_t num_samples() const override { return 50; }
  const std::vector<TensorSpec>& fields() const override { return fields_; }
  absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      if (field == 1) {
        reinterpret_cast<int64_t*>(out.data())[i] = indices[i] % classes_;
        continue;
      }
      for (int64_t f = 0; f < kFeatures; ++f) {
        reinterpret_cast<float*>(out.data())[i * kFeatures + f] =
            indices[i] == poisoned_ ? std::numeric_limits<float>::infinity()
                                    : static_cast<float>((indices[i] * 37 + f * 11) % 23) / 7.0f - 1.5f;
      }
    }
    return absl::OkStatus();
  }
  int64_t held_bytes() const override { return 0; }
  const std::string& content_hash() const override { return hash_; }

 private:
  const int64_t poisoned_;
  const int64_t classes_;
  const std::vector<TensorSpec> fields_;
  const std::string hash_ = "made up";
};

struct SmallModelOptions {
  OnNan on_nan = OnNan::kStop;
  std::optional<int64_t> ignored_class;
  OptimizerRule optimizer = {.kind = OptimizerKind::kAdamW, .weight_decay = 0.01};
  std::vector<ParameterGroup> groups;  // selected by patterns of names
  double lr = 0.01;
  ReductionMode reduction = ReductionMode::kExact;
  int shards = kShards;
  int passes = 1;                // of a shard
  std::string input = "inputs";  // the name of the model's input and of its feature
};

inline MetaGraph SmallModel(const SmallModelOptions& options) {
  MetaGraphRequest request;
  request.model = {.architecture = "mlp", .outputs = 3, .hidden_sizes = {8}, .dropout = 0.25, .batch_norm = true};
  request.inputs = {{options.input, options.input, InputRole::kFeature, DType::kF32, {kBatchDim, kFeatures}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.loss.kind = LossKind::kSoftmaxCrossEntropy;
  request.loss.ignore_index = options.ignored_class;
  request.update.optimizer = options.optimizer;
  request.update.reduction = options.reduction;
  request.groups = options.groups;
  request.update.schedule = {.kind = ScheduleKind::kConstant, .lr = options.lr};
  request.update.clip_global_norm = 1.0;
  request.update.ema = EmaRule{.decay = 0.9};
  request.update.on_nan = options.on_nan;
  request.pass_batch = kBatch / options.shards / options.passes;
  auto metagraph = BuildMetaGraph(request);
  LS_CHECK(metagraph.ok(), std::string(metagraph.status().message()).c_str());
  return *std::move(metagraph);
}

// The memory of a replica's device.
enum class Memory { kOfHost, kDeferred, kHidden };

inline std::unique_ptr<device::Device> MakeDeviceWith(device::DeviceKind kind, Memory memory) {
  auto device = device::MakeDevice(kind, {}).value();
  if (memory == Memory::kOfHost) return device;
  return device::MakeDeferredDevice(std::move(device), memory == Memory::kDeferred ? device::DeferredMemory::kOfInner
                                                                                   : device::DeferredMemory::kHidden);
}

struct SmallReplicaOptions {
  MetaGraph metagraph;
  int shards = kShards;
  Pulse* pulse = nullptr;
  device::DeviceKind kind = device::DeviceKind::kReference;
  Memory memory = Memory::kOfHost;
};

// A replica without a session: device, state, plans and runner.
struct SmallReplica {
  SmallReplica(const SmallReplicaOptions& options, const DataSource& data) {
    const MetaGraph& metagraph = options.metagraph;
    device = MakeDeviceWith(options.kind, options.memory);
    state = ReplicaState::Create(MakeStateLayout(metagraph), *device).value();
    LS_CHECK(state->host().Load(MakeInitialState(metagraph, 7).value()).ok(), "the initial state fits");
    LS_CHECK(state->Store().ok(), "the initial state arrives");
    std::map<std::string, std::byte*> variables;
    for (const Variable& variable : metagraph.forward.variables) {
      variables[variable.name] = state->address(state->layout().Find(variable.name));
    }
    StepConfig config{.metagraph = metagraph,
                      .training = MakeTrainingGraph(metagraph).value(),
                      .evaluation = MakeEvaluationGraph(metagraph, kBatch / kShards).value(),
                      .seed = 7,
                      .global_batch = kBatch,
                      .logical_shards = options.shards,
                      .eval_batch = kBatch / kShards,
                      .pulse = options.pulse,
                      .device = device.get(),
                      .poison = true};
    PlanOptions plan{.pulse = options.pulse, .poison = true};
    plan.accumulate_passes = metagraph.pass_batch * options.shards < kBatch;
    plan.gradients = GradientMemoryFor(*device, options.shards, options.shards, metagraph.update.reduction);
    training = Plan::Make(device.get(), config.training.graph, variables, plan).value();
    evaluation =
        Plan::Make(device.get(), config.evaluation.graph, variables, {.label = "evaluation", .poison = true}).value();
    runner = StepRunner::Make(std::move(config), state.get(), {training.get(), evaluation.get()}, &data, &data).value();
  }
  ~SmallReplica() {
    // Plans wait for queued work that uses the state, so they are destroyed first.
    runner.reset();
    evaluation.reset();
    training.reset();
  }

  std::string Digest() {
    LS_CHECK(state->Fetch().ok(), "the state comes to the host");
    return state->host().Digest();
  }

  std::unique_ptr<device::Device> device;
  std::unique_ptr<ReplicaState> state;
  std::unique_ptr<Plan> training;
  std::unique_ptr<Plan> evaluation;
  std::unique_ptr<StepRunner> runner;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_SMALL_REPLICA_H_
