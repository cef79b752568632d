#include "worker/step/step_runner.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/status/status_macros.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/step/small_replica.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

struct RunOfRank {
  std::string digest;
  std::vector<double> losses;
  std::vector<EvaluationSums> evaluated;
  int64_t redone = 0;
  uint64_t nodes = 0;  // executed by the steps
  bool applied = true;
  std::string message;
};

// `steps` steps and one evaluation on every rank; what each rank ends with.
std::vector<RunOfRank> Train(int ranks, int steps, const DataSource& data,
                             const MetaGraph& metagraph = SmallModel({})) {
  auto communicators = MakeLoopback({1, 1}, ranks);
  std::vector<RunOfRank> runs(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      SmallReplica replica({.metagraph = metagraph}, data);
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
      runs[r].nodes = replica.runner->nodes_executed();
      const int64_t slices = (data.num_samples() + kBatch - 1) / kBatch;
      for (int64_t slice = 0; slice < slices && runs[r].applied; ++slice) {
        auto outcome = replica.runner->RunSlice(*communicators[r], steps, slice, {});
        if (!outcome.ok()) return;
        runs[r].evaluated.push_back(outcome->result.sums);
      }
      runs[r].digest = replica.Digest();
      runs[r].redone = replica.runner->times().redone;
    });
  }
  for (auto& thread : threads) thread.join();
  return runs;
}

TEST_CASE("step: an input that is called as the labels are is fed by its own feature", "[step]") {
  const RunOfRank usual = Train(1, 4, MadeUpData())[0];

  const RunOfRank run = Train(1, 4, MadeUpData(-1, 3, "labels"), SmallModel({.input = "labels"}))[0];

  CHECK(run.message.empty());
  CHECK(run.losses == usual.losses);
  CHECK(run.evaluated == usual.evaluated);
  CHECK(run.digest == usual.digest);
}

TEST_CASE("step: the state has the same bits for any number of ranks, on every rank", "[step]") {
  const MadeUpData data;
  const RunOfRank alone = Train(1, 6, data)[0];
  REQUIRE_FALSE(alone.digest.empty());
  REQUIRE(alone.losses.size() == 6);

  for (int ranks = 2; ranks <= kShards; ++ranks) {
    for (const RunOfRank& run : Train(ranks, 6, data)) {
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

TEST_CASE("step: a rank with one shard sums its first step again without computing it again", "[step]") {
  const MadeUpData data;
  const int passes = GENERATE(1, 2);
  const MetaGraph metagraph = SmallModel({.passes = passes});
  const std::vector<RunOfRank> once = Train(kShards, 1, data, metagraph);
  const std::vector<RunOfRank> twice = Train(kShards, 2, data, metagraph);

  for (int r = 0; r < kShards; ++r) {
    CHECK(twice[r].redone == 1);
    CHECK(twice[r].nodes == 2 * once[r].nodes);
  }
  CHECK(twice[0].digest == Train(1, 2, data, metagraph)[0].digest);
}

TEST_CASE("step: a rank shows that it waits for a peer, and that it computed before", "[step]") {
  const MadeUpData data;
  Pulse pulse;
  SmallReplica replica({.metagraph = SmallModel({}), .pulse = &pulse}, data);
  const uint64_t planned = pulse.progress();
  CHECK(planned > 0);
  auto communicators = MakeLoopback({1, 1}, 2);
  absl::Status status;

  std::thread rank([&] { status = replica.runner->RunStep(*communicators[0], 1, {}).status(); });
  // The peer claims nothing, and then does not come.
  const int64_t each = ClaimBytes(kShards);
  std::vector<char> claims(2 * static_cast<size_t>(each));
  REQUIRE(communicators[1]->AllGather({1, kClaimAttempt}, absl::MakeSpan(claims), {each, each})->Wait(kLong).ok());
  while (pulse.progress() == planned || !pulse.waits_for_peer()) std::this_thread::yield();

  CHECK(pulse.progress() > planned);
  communicators[0]->Abort(absl::AbortedError("the peer does not come"));
  rank.join();
  CHECK_FALSE(status.ok());
  CHECK_FALSE(pulse.waits_for_peer());
}

TEST_CASE("step: an evaluation counts every sample once", "[step]") {
  const RunOfRank run = Train(2, 1, MadeUpData())[1];
  EvaluationSums sums;
  for (const EvaluationSums& slice : run.evaluated) sums += slice;
  CHECK(sums.counted == 50);
  CHECK(sums.correct <= sums.top5);
  CHECK(sums.top5 <= sums.counted);
}

TEST_CASE("step: `on_nan: stop` leaves the state as it was and names the tensor", "[step]") {
  const std::string before = Train(1, 0, MadeUpData())[0].digest;
  for (int64_t poisoned = 0; poisoned < 50; ++poisoned) {
    const RunOfRank run = Train(1, 1, MadeUpData(poisoned))[0];
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
    const RunOfRank skipped = Train(1, 1, MadeUpData(poisoned), SmallModel({.on_nan = OnNan::kSkipStep}))[0];
    CHECK(skipped.applied);
    const MetaGraph metagraph = SmallModel({.on_nan = OnNan::kSkipStep});
    const MadeUpData data;
    SmallReplica replica({.metagraph = metagraph}, data);
    replica.state->set_step(1);
    CHECK(skipped.digest == replica.Digest());
    return;
  }
  FAIL("the poisoned sample was in no batch");
}

TEST_CASE("step: a step in which no label counts has no mean, and follows `on_nan`", "[step]") {
  const MadeUpData of_one_class(-1, 1);
  const std::string before = Train(1, 0, of_one_class)[0].digest;

  for (const RunOfRank& run : Train(2, 1, of_one_class, SmallModel({.ignored_class = 0}))) {
    CHECK_FALSE(run.applied);
    CHECK(run.digest == before);
    CHECK_THAT(run.message, Catch::Matchers::Contains("no label counts at step 1"));
  }
  const RunOfRank skipped = Train(1, 3, of_one_class, SmallModel({.on_nan = OnNan::kSkipStep, .ignored_class = 0}))[0];
  CHECK(skipped.applied);
  CHECK(skipped.losses.size() == 3);
  CHECK(Train(1, 1, of_one_class, SmallModel({.ignored_class = 1}))[0].applied);
}

// Reads all but the last feature of every sample.
class UnfinishedData final : public DataSource {
 public:
  int64_t num_samples() const override { return whole_.num_samples(); }
  const std::vector<TensorSpec>& fields() const override { return whole_.fields(); }
  absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    std::vector<std::byte> read(out.size());
    LS_RETURN_IF_ERROR(whole_.Read(field, indices, absl::MakeSpan(read)));
    const size_t sample = out.size() / indices.size();
    const size_t left_out = field == 0 ? sizeof(float) : 0;
    for (size_t at = 0; at < out.size(); ++at) {
      if (at % sample < sample - left_out) out[at] = read[at];
    }
    return absl::OkStatus();
  }
  int64_t held_bytes() const override { return whole_.held_bytes(); }
  const std::string& content_hash() const override { return whole_.content_hash(); }

 private:
  const MadeUpData whole_;
};

TEST_CASE("step: what the data did not write is never computed with unseen", "[step]") {
  const RunOfRank run = Train(1, 1, UnfinishedData())[0];

  CHECK_FALSE(run.applied);
  CHECK_THAT(run.message, Catch::Matchers::Contains("is not finite at step 1"));
}

TEST_CASE("step: an input that no field feeds is refused before the first step", "[step]") {
  const MadeUpData data;
  SmallReplica replica({.metagraph = SmallModel({})}, data);
  const auto refused = [&](const DataSource& other) {
    const auto runner = StepRunner::Make(replica.runner->config(), replica.state.get(),
                                         {replica.training.get(), replica.evaluation.get()}, &other, &other);
    CHECK(absl::IsInternal(runner.status()));
    return std::string(runner.status().message());
  };

  CHECK_THAT(refused(MadeUpData(-1, 3, "others")),
             Catch::Matchers::Contains("no field of the data feeds input 'inputs'"));
  StepConfig config = replica.runner->config();
  config.metagraph.pass_batch *= 2;
  const auto runner =
      StepRunner::Make(config, replica.state.get(), {replica.training.get(), replica.evaluation.get()}, &data, &data);
  CHECK(absl::IsInternal(runner.status()));
  CHECK_THAT(std::string(runner.status().message()), Catch::Matchers::Contains("the field 'inputs' that feeds it"));
}

}  // namespace
}  // namespace lockstep::worker
