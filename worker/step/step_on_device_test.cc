// Steps on memory that the host cannot touch: every bit is that of the same device with memory that it can.
#include <barrier>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/fakes/loopback_device_communicator.h"
#include "worker/snapshot/snapshot_store.h"
#include "worker/step/small_replica.h"

namespace lockstep::worker {
namespace {

constexpr device::DeviceKind kCpu = device::DeviceKind::kCpu;

struct Setting {
  SmallModelOptions model;
  int ranks = 1;
  int steps = 4;
  int64_t poisoned = -1;
  Memory memory = Memory::kOfHost;
  bool reduced_on_device = false;
};

// What rank 0 ends with; every rank has the same digests.
struct Run {
  std::vector<std::string> digests;    // of the state after every step
  std::vector<std::string> snapshots;  // likewise, taken before the next step and read after it
  std::vector<uint64_t> losses;        // as bits: a loss may be NaN
  std::vector<GradientNorm> norms;
  std::vector<EvaluationSums> evaluated;
  int64_t redone = 0;
  bool applied = true;
  friend bool operator==(const Run&, const Run&) = default;
};

void MustOk(const absl::Status& status) { LS_CHECK(status.ok(), std::string(status.message()).c_str()); }

Run TrainRank(const Setting& setting, Communicator& communicator, SmallReplica& replica) {
  Run run;
  SnapshotStore store;
  MustOk(store.Reserve(*replica.state, 2));
  Snapshot before;
  for (int step = 1; step <= setting.steps && run.applied; ++step) {
    const StepResult result = replica.runner->RunStep(communicator, step, {}).value();
    run.applied = result.applied;
    run.losses.push_back(std::bit_cast<uint64_t>(result.record.loss));
    if (result.norm.has_value()) run.norms.push_back(*result.norm);
    if (before.state != nullptr) {
      MustOk(before.Wait());
      run.snapshots.push_back(before.state->Digest());
    }
    // Nothing has waited for the update yet.
    before = store.Take(*replica.state).value();
    if (step % 2 == 1) run.digests.push_back(replica.Digest());
  }
  for (int64_t slice = 0; slice < 4 && run.applied; ++slice) {
    run.evaluated.push_back(replica.runner->RunSlice(communicator, setting.steps, slice, {}).value().result.sums);
  }
  MustOk(before.Wait());
  run.snapshots.push_back(before.state->Digest());
  run.digests.push_back(replica.Digest());
  run.redone = replica.runner->times().redone;
  return run;
}

std::vector<Run> TrainOnDevice(const Setting& setting) {
  const MadeUpData data(setting.poisoned);
  const MetaGraph metagraph = SmallModel(setting.model);
  auto words = MakeLoopback({1, 1}, setting.ranks);
  auto buckets = MakeLoopback({1, 1}, setting.ranks);
  std::vector<Run> runs(setting.ranks);
  std::vector<std::thread> threads;
  std::barrier all(setting.ranks);
  for (int r = 0; r < setting.ranks; ++r) {
    threads.emplace_back([&, r] {
      SmallReplica replica(
          {.metagraph = metagraph, .shards = setting.model.shards, .kind = kCpu, .memory = setting.memory}, data);
      std::unique_ptr<Communicator> communicator = std::move(words[r]);
      if (setting.reduced_on_device) {
        communicator = MakeLoopbackOnDevice(std::move(communicator), std::move(buckets[r]), *replica.device).value();
      }
      runs[r] = TrainRank(setting, *communicator, replica);
      // Who closes its communicator ends the calls that others are still in.
      all.arrive_and_wait();
    });
  }
  for (auto& thread : threads) thread.join();
  return runs;
}

// Every way of having gradients and state where the host is not gives what the host's memory gives.
void CheckEverywhere(Setting setting) {
  setting.memory = Memory::kOfHost;
  const Run expected = TrainOnDevice(setting)[0];
  REQUIRE_FALSE(expected.snapshots.empty());
  for (const Memory memory : {Memory::kDeferred, Memory::kHidden}) {
    for (const bool reduced_on_device : {false, true}) {
      if (reduced_on_device && memory == Memory::kDeferred) continue;
      setting.memory = memory;
      setting.reduced_on_device = reduced_on_device;
      CAPTURE(static_cast<int>(memory), reduced_on_device);
      for (const Run& run : TrainOnDevice(setting)) CHECK(run == expected);
    }
  }
}

TEST_CASE("step on a device: a redo, clipping, averages, statistics and evaluation have the host's bits", "[step]") {
  const int ranks = GENERATE(1, 2, 3);
  const int passes = GENERATE(1, 2);
  CAPTURE(ranks, passes);
  const Setting setting{.model = {.passes = passes}, .ranks = ranks};
  CHECK(TrainOnDevice(setting)[0].redone >= 1);

  CheckEverywhere(setting);
}

// By the length of what plain gradient descent moves the parameters.
TEST_CASE("step on a device: a step tells the norm of the gradient before it, as it was before it was clipped",
          "[step]") {
  const MadeUpData data;
  MetaGraph metagraph = SmallModel({.optimizer = {.kind = OptimizerKind::kSgd}});
  const auto moved = [&](double clip, GradientNorm& norm) {
    metagraph.update.clip_global_norm = clip;
    SmallReplica replica({.metagraph = metagraph, .kind = kCpu, .memory = Memory::kHidden}, data);
    const auto communicators = MakeLoopback({1, 1}, 1);
    double squares = 0;
    MustOk(replica.state->Fetch());
    std::vector<std::vector<float>> before;
    const auto values = [&](const Variable& variable) {
      const absl::Span<float> all = replica.state->host().floats(replica.state->layout().Find(variable.name));
      return std::vector<float>(all.begin(), all.end());
    };
    for (const Variable& variable : metagraph.forward.variables) before.push_back(values(variable));
    CHECK_FALSE(replica.runner->RunStep(*communicators[0], 1, {}).value().norm.has_value());
    MustOk(replica.state->Fetch());
    for (size_t v = 0; v < before.size(); ++v) {
      if (metagraph.forward.variables[v].kind != VariableKind::kParameter) continue;
      const std::vector<float> after = values(metagraph.forward.variables[v]);
      for (size_t i = 0; i < after.size(); ++i) squares += std::pow(double{after[i]} - before[v][i], 2);
    }
    norm = replica.runner->RunStep(*communicators[0], 2, {}).value().norm.value();
    return std::sqrt(squares) / metagraph.update.schedule.lr;
  };

  GradientNorm whole, clipped;
  const double length = moved(1e6, whole);
  const double half = moved(length / 2, clipped);

  CHECK(whole.step == 1);
  CHECK(whole.value == Approx(length).epsilon(1e-3));
  CHECK(half == Approx(length / 2).epsilon(1e-3));
  CHECK(clipped.value == whole.value);
}

TEST_CASE("step on a device: every optimizer has the host's bits", "[step]") {
  const bool decays = GENERATE(false, true);
  for (OptimizerRule rule :
       {OptimizerRule{.kind = OptimizerKind::kSgd},
        OptimizerRule{.kind = OptimizerKind::kSgd, .momentum = 0.9, .nesterov = true},
        OptimizerRule{.kind = OptimizerKind::kAdam},
        OptimizerRule{.kind = OptimizerKind::kRmsProp, .momentum = 0.9, .weight_decay = 0.01},
        OptimizerRule{.kind = OptimizerKind::kAdagrad, .weight_decay = 0.01},
        OptimizerRule{.kind = OptimizerKind::kLion, .weight_decay = 0.01}, OptimizerRule{.kind = OptimizerKind::kLamb},
        OptimizerRule{.kind = OptimizerKind::kAdafactor, .epsilon = 1e-7}}) {
    if (decays) rule.weight_decay = 0.01;
    CheckEverywhere({.model = {.optimizer = rule}, .ranks = 2});
  }
}

// Such an update needs sums over whole parameters, and every rank makes all of it.
TEST_CASE("step on a device: updates by norms have the same bits for any number of ranks", "[step]") {
  const auto kind = GENERATE(OptimizerKind::kLamb, OptimizerKind::kAdafactor);
  SmallModelOptions model{.on_nan = OnNan::kSkipStep,
                          .optimizer = {.kind = kind, .weight_decay = 0.1, .epsilon = 1e-7}};
  model.groups = {{.parameters = {"*.bias"}, .lr = 0.05, .weight_decay = 0}};
  const int64_t poisoned = GENERATE(-1, 3);
  CAPTURE(static_cast<int>(kind), poisoned);
  const Run expected = TrainOnDevice({.model = model, .ranks = 1, .steps = 12, .poisoned = poisoned})[0];
  CHECK(expected.digests.front() != expected.digests.back());

  for (const int ranks : {2, 3}) {
    for (const Run& run : TrainOnDevice({.model = model, .ranks = ranks, .steps = 12, .poisoned = poisoned})) {
      CHECK(run.digests == expected.digests);
    }
  }
}

TEST_CASE("step on a device: a group is updated as if its rule were that of all parameters", "[step]") {
  const MadeUpData data;
  const SmallModelOptions plain;
  SmallModelOptions other = plain;
  other.lr = 0.05;
  other.optimizer.weight_decay = 0.5;
  SmallModelOptions grouped = plain;
  grouped.groups = {{.parameters = {"*.bias"}, .lr = 0.05, .weight_decay = 0.5}};
  const auto after_a_step = [&](const SmallModelOptions& options) {
    SmallReplica replica({.metagraph = SmallModel(options), .kind = kCpu}, data);
    const auto communicators = MakeLoopback({1, 1}, 1);
    REQUIRE(replica.runner->RunStep(*communicators[0], 1, {}).ok());
    std::map<std::string, std::vector<std::byte>> values;
    for (const Variable& variable : SmallModel(options).forward.variables) {
      if (variable.kind != VariableKind::kParameter) continue;
      const int index = replica.state->layout().Find(variable.name);
      const auto* const bytes = reinterpret_cast<const std::byte*>(replica.state->floats(index));
      values[variable.name] = {bytes, bytes + NumElements(variable.shape) * sizeof(float)};
    }
    return values;
  };
  const auto as_plain = after_a_step(plain);
  const auto as_other = after_a_step(other);

  for (const auto& [name, value] : after_a_step(grouped)) {
    CAPTURE(name);
    const bool in_group = absl::EndsWith(name, ".bias");
    CHECK((value == as_other.at(name)) == in_group);
    CHECK((value == as_plain.at(name)) == !in_group);
  }
  CheckEverywhere({.model = grouped, .ranks = 2});
}

TEST_CASE("step on a device: one logical shard and native sums have the host's bits", "[step]") {
  CheckEverywhere({.model = {.shards = 1}});
  CheckEverywhere({.model = {.shards = 1, .passes = 4}});
  CheckEverywhere({.model = {.reduction = ReductionMode::kFast}, .ranks = 2});
}

TEST_CASE("step on a device: a gradient that is not finite is skipped, or ends the run, as on the host", "[step]") {
  const OnNan on_nan = GENERATE(OnNan::kStop, OnNan::kSkipStep);
  const ReductionMode reduction = GENERATE(ReductionMode::kExact, ReductionMode::kFast);
  CAPTURE(static_cast<int>(on_nan), static_cast<int>(reduction));
  // Among 50 samples of which 16 serve a step, each is met within 4 steps.
  CheckEverywhere({.model = {.on_nan = on_nan, .reduction = reduction}, .ranks = 2, .poisoned = 3});
}

TEST_CASE("step on a device: a snapshot does not change while the next steps are made", "[step]") {
  const MadeUpData data;
  SmallReplica replica({.metagraph = SmallModel({}), .kind = kCpu, .memory = Memory::kHidden}, data);
  const auto communicators = MakeLoopback({1, 1}, 1);
  SnapshotStore store;
  REQUIRE(store.Reserve(*replica.state, 1).ok());
  REQUIRE(replica.runner->RunStep(*communicators[0], 1, {}).ok());

  const Snapshot snapshot = store.Take(*replica.state).value();
  REQUIRE(snapshot.copied != nullptr);
  CHECK_FALSE(snapshot.copied->Ready());
  // The gate of step 3 waits for the update of step 2.
  REQUIRE(replica.runner->RunStep(*communicators[0], 2, {}).ok());
  REQUIRE(replica.runner->RunStep(*communicators[0], 3, {}).ok());
  // Any thread may wait for it.
  std::thread([&] { MustOk(snapshot.Wait()); }).join();

  CHECK(snapshot.state->step() == 1);
  CHECK(snapshot.state->Digest() == TrainOnDevice({.steps = 1})[0].digests.back());
  CHECK(replica.Digest() == TrainOnDevice({.steps = 3})[0].digests.back());
}

TEST_CASE("step on a device: a state that was received or restored is what the next step begins from", "[step]") {
  const MadeUpData data;
  const MetaGraph metagraph = SmallModel({});
  SmallReplica source({.metagraph = metagraph, .kind = kCpu, .memory = Memory::kHidden}, data);
  SmallReplica newcomer({.metagraph = metagraph, .kind = kCpu, .memory = Memory::kHidden}, data);
  const auto communicators = MakeLoopback({1, 1}, 1);
  REQUIRE(source.runner->RunStep(*communicators[0], 1, {}).ok());
  // The newcomer was somewhere else, and its last update is still queued.
  REQUIRE(newcomer.runner->RunStep(*communicators[0], 1, {}).ok());
  REQUIRE(newcomer.runner->RunStep(*communicators[0], 2, {}).ok());

  REQUIRE(source.state->Fetch().ok());
  newcomer.state->host().CopyFrom(source.state->host());
  REQUIRE(newcomer.state->Store().ok());
  newcomer.runner->StateReplaced();
  for (SmallReplica* replica : {&source, &newcomer}) {
    for (int step = 2; step <= 4; ++step) REQUIRE(replica->runner->RunStep(*communicators[0], step, {}).ok());
  }

  CHECK(newcomer.Digest() == source.Digest());
  CHECK(newcomer.Digest() == TrainOnDevice({.steps = 4})[0].digests.back());
}

TEST_CASE("step on a device: a step that was broken off leaves the state as it was", "[step]") {
  const MadeUpData data;
  SmallReplica replica({.metagraph = SmallModel({}), .kind = kCpu, .memory = Memory::kHidden}, data);
  const auto alone = MakeLoopback({1, 1}, 1);
  REQUIRE(replica.runner->RunStep(*alone[0], 1, {}).ok());
  const std::string before = replica.Digest();

  auto pair = MakeLoopback({1, 2}, 2);
  pair[1].reset();
  CHECK_FALSE(replica.runner->RunStep(*pair[0], 2, {}).ok());
  replica.runner->Cancel(true);
  const auto again = MakeLoopback({1, 3}, 1);
  CHECK(absl::IsCancelled(replica.runner->RunStep(*again[0], 2, {}).status()));
  CHECK(replica.Digest() == before);

  replica.runner->Cancel(false);
  const auto last = MakeLoopback({1, 4}, 1);
  REQUIRE(replica.runner->RunStep(*last[0], 2, {}).ok());
  CHECK(replica.Digest() == TrainOnDevice({.steps = 2})[0].digests.back());
}

}  // namespace
}  // namespace lockstep::worker
