#include "worker/step/step_runner.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/graph/build_metagraph.h"
#include "common/graph/initial_state.h"
#include "common/status/check.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/device/devices.h"

namespace lockstep::worker {
namespace {

constexpr int kShards = 4;
constexpr int64_t kBatch = 16;
constexpr int64_t kFeatures = 6;

// Samples that are a function of their index, of so many classes; sample `poisoned` holds a value that is not finite.
class MadeUpData final : public DataSource {
 public:
  explicit MadeUpData(int64_t poisoned = -1, int64_t classes = 3) : poisoned_(poisoned), classes_(classes) {}
  int64_t num_samples() const override { return 50; }
  const std::vector<TensorSpec>& fields() const override { return fields_; }
  void Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
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
  }
  const std::string& content_hash() const override { return hash_; }

 private:
  const int64_t poisoned_;
  const int64_t classes_;
  const std::vector<TensorSpec> fields_ = {{"inputs", DType::kF32, {kFeatures}}, {"labels", DType::kI64, {}}};
  const std::string hash_ = "made up";
};

MetaGraph SmallModel(OnNan on_nan, std::optional<int64_t> ignored_class = std::nullopt) {
  MetaGraphRequest request;
  request.model = {.architecture = "mlp", .outputs = 3, .hidden_sizes = {8}, .dropout = 0.25, .batch_norm = true};
  request.inputs = {{"inputs", "inputs", InputRole::kFeature, DType::kF32, {kBatchDim, kFeatures}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.loss.kind = LossKind::kSoftmaxCrossEntropy;
  request.loss.ignore_index = ignored_class;
  request.update.optimizer = {.kind = OptimizerKind::kAdamW, .weight_decay = 0.01};
  request.update.schedule = {.kind = ScheduleKind::kConstant, .lr = 0.01};
  request.update.clip_global_norm = 1.0;
  request.update.ema = EmaRule{.decay = 0.9};
  request.update.on_nan = on_nan;
  request.pass_batch = kBatch / kShards;
  auto metagraph = BuildMetaGraph(request);
  INFO(metagraph.status().ToString());
  REQUIRE(metagraph.ok());
  return *std::move(metagraph);
}

// A replica without a session: device, state, plans and runner.
struct SmallReplica {
  SmallReplica(const MetaGraph& metagraph, const DataSource& data, Pulse* pulse = nullptr) {
    device = device::MakeDevice(device::DeviceKind::kReference, {}).value();
    state = std::make_unique<ReplicaState>(ReplicaState::Create(MakeStateLayout(metagraph)).value());
    // No assertion of the test framework: ranks are made on threads of their own, and it is not thread-safe.
    LS_CHECK(state->Load(MakeInitialState(metagraph, 7).value()).ok(), "the initial state fits");
    std::map<std::string, std::byte*> variables;
    for (const Variable& variable : metagraph.forward.variables) {
      variables[variable.name] = state->tensor(state->layout().Find(variable.name)).data();
    }
    StepConfig config{.metagraph = metagraph,
                      .training = MakeTrainingGraph(metagraph).value(),
                      .evaluation = MakeEvaluationGraph(metagraph, kBatch / kShards).value(),
                      .seed = 7,
                      .global_batch = kBatch,
                      .logical_shards = kShards,
                      .eval_batch = kBatch / kShards,
                      .pulse = pulse};
    training = Plan::Make(device.get(), config.training.graph, variables, {.pulse = pulse}).value();
    evaluation = Plan::Make(device.get(), config.evaluation.graph, variables, {.label = "evaluation"}).value();
    runner =
        std::make_unique<StepRunner>(std::move(config), state.get(), training.get(), evaluation.get(), &data, &data);
  }
  std::unique_ptr<device::Device> device;
  std::unique_ptr<ReplicaState> state;
  std::unique_ptr<Plan> training;
  std::unique_ptr<Plan> evaluation;
  std::unique_ptr<StepRunner> runner;
};

struct Run {
  std::string digest;
  std::vector<double> losses;
  std::vector<EvaluationSums> evaluated;
  int64_t redone = 0;
  bool applied = true;
  std::string message;
};

// `steps` steps and one evaluation on every rank; what each rank ends with.
std::vector<Run> Train(int ranks, int steps, const DataSource& data,
                       const MetaGraph& metagraph = SmallModel(OnNan::kStop)) {
  auto communicators = MakeLoopback({1, 1}, ranks);
  std::vector<Run> runs(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      SmallReplica replica(metagraph, data);
      for (int step = 1; step <= steps && runs[r].applied; ++step) {
        auto result = replica.runner->RunStep(*communicators[r], step, {});
        if (!result.ok()) {
          runs[r].message = std::string(result.status().message());
          return;
        }
        runs[r].applied = result->applied;
        runs[r].losses.push_back(result->record.loss);
        runs[r].message = result->message;
      }
      const int64_t slices = (data.num_samples() + kBatch - 1) / kBatch;
      for (int64_t slice = 0; slice < slices && runs[r].applied; ++slice) {
        auto outcome = replica.runner->RunSlice(*communicators[r], steps, slice, {});
        if (!outcome.ok()) return;
        runs[r].evaluated.push_back(outcome->result.sums);
      }
      runs[r].digest = replica.state->Digest();
      runs[r].redone = replica.runner->times().redone;
    });
  }
  for (auto& thread : threads) thread.join();
  return runs;
}

TEST_CASE("step: the state has the same bits for any number of ranks, on every rank", "[step]") {
  const MadeUpData data;
  const Run alone = Train(1, 6, data)[0];
  REQUIRE_FALSE(alone.digest.empty());
  REQUIRE(alone.losses.size() == 6);

  for (int ranks = 2; ranks <= kShards; ++ranks) {
    for (const Run& run : Train(ranks, 6, data)) {
      CHECK(run.digest == alone.digest);
      CHECK(run.losses == alone.losses);
      CHECK(run.evaluated == alone.evaluated);
      CHECK(run.redone == alone.redone);
    }
  }
}

TEST_CASE("step: the first step is summed a second time once the magnitudes are known", "[step]") {
  CHECK(Train(1, 1, MadeUpData())[0].redone == 1);
}

TEST_CASE("step: a rank shows that it waits for a peer, and that it computed before", "[step]") {
  const MadeUpData data;
  Pulse pulse;
  SmallReplica replica(SmallModel(OnNan::kStop), data, &pulse);
  const uint64_t planned = pulse.progress();
  CHECK(planned > 0);
  auto communicators = MakeLoopback({1, 1}, 2);
  absl::Status status;

  std::thread rank([&] { status = replica.runner->RunStep(*communicators[0], 1, {}).status(); });
  while (!pulse.waits_for_peer()) std::this_thread::yield();

  CHECK(pulse.progress() > planned);
  communicators[0]->Abort(absl::AbortedError("the peer does not come"));
  rank.join();
  CHECK_FALSE(status.ok());
  CHECK_FALSE(pulse.waits_for_peer());
}

TEST_CASE("step: an evaluation counts every sample once", "[step]") {
  const Run run = Train(2, 1, MadeUpData())[1];
  EvaluationSums sums;
  for (const EvaluationSums& slice : run.evaluated) sums += slice;
  CHECK(sums.counted == 50);
  CHECK(sums.correct <= sums.top5);
  CHECK(sums.top5 <= sums.counted);
}

TEST_CASE("step: `on_nan: stop` leaves the state as it was and names the tensor", "[step]") {
  const std::string before = Train(1, 0, MadeUpData())[0].digest;
  for (int64_t poisoned = 0; poisoned < 50; ++poisoned) {
    const Run run = Train(1, 1, MadeUpData(poisoned))[0];
    if (run.applied) continue;  // this sample is not in the first batch
    CHECK(run.digest == before);
    CHECK_THAT(run.message, Catch::Matchers::Contains("is not finite at step 1"));
    CHECK(Train(3, 1, MadeUpData(poisoned))[2].digest == before);
    return;
  }
  FAIL("the poisoned sample was in no batch");
}

TEST_CASE("step: `on_nan: skip_step` counts the step and changes nothing else", "[step]") {
  for (int64_t poisoned = 0; poisoned < 50; ++poisoned) {
    if (Train(1, 1, MadeUpData(poisoned))[0].applied) continue;
    const Run skipped = Train(1, 1, MadeUpData(poisoned), SmallModel(OnNan::kSkipStep))[0];
    CHECK(skipped.applied);
    const MetaGraph metagraph = SmallModel(OnNan::kSkipStep);
    const MadeUpData data;
    SmallReplica replica(metagraph, data);
    replica.state->step() = 1;
    CHECK(skipped.digest == replica.state->Digest());
    return;
  }
  FAIL("the poisoned sample was in no batch");
}

TEST_CASE("step: a step in which no label counts has no mean, and follows `on_nan`", "[step]") {
  const MadeUpData of_one_class(-1, 1);
  const std::string before = Train(1, 0, of_one_class)[0].digest;

  for (const Run& run : Train(2, 1, of_one_class, SmallModel(OnNan::kStop, 0))) {
    CHECK_FALSE(run.applied);
    CHECK(run.digest == before);
    CHECK_THAT(run.message, Catch::Matchers::Contains("no label counts at step 1"));
  }
  const Run skipped = Train(1, 3, of_one_class, SmallModel(OnNan::kSkipStep, 0))[0];
  CHECK(skipped.applied);
  CHECK(skipped.losses.size() == 3);
  CHECK(Train(1, 1, of_one_class, SmallModel(OnNan::kStop, 1))[0].applied);
}

}  // namespace
}  // namespace lockstep::worker
