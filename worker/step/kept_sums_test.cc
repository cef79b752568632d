// Steps that a lost rank breaks, and what the others then compute.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/step/small_replica.h"

namespace lockstep::worker {
namespace {

constexpr int kSteps = 5;

// Replicas that live through several generations.
class Team {
 public:
  Team(int ranks, const DataSource& data, const SmallReplicaOptions& options) : pulses_(ranks) {
    for (int r = 0; r < ranks; ++r) {
      SmallReplicaOptions own = options;
      own.pulse = &pulses_[r];
      replicas_.emplace_back(own, data);
    }
  }

  SmallReplica& replica(int rank) { return replicas_[rank]; }
  bool waits(int rank) const { return pulses_[rank].waits_for_peer(); }
  int64_t shards(int rank) const { return replicas_[rank].runner->times().shards; }

  // A new generation of the first `ranks`.
  void Form(int ranks) { communicators_ = MakeLoopback({1, ++generations_}, ranks); }
  Communicator& communicator(int rank) { return *communicators_[rank]; }

  // One step on every rank of the generation; what each says. `meanwhile` runs on this thread.
  std::vector<absl::Status> Step(int64_t step, const std::function<void()>& meanwhile) {
    std::vector<absl::Status> statuses(communicators_.size());
    std::vector<std::thread> threads;
    ended_ = 0;
    for (size_t r = 0; r < communicators_.size(); ++r) {
      threads.emplace_back([&, r] {
        statuses[r] = replicas_[r].runner->RunStep(*communicators_[r], step, {}).status();
        ++ended_;
      });
    }
    meanwhile();
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }
  // Whether a rank is through with the step that is under way.
  bool any_ended() const { return ended_ > 0; }
  void Train(int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      for (const absl::Status& status : Step(step, [] {})) REQUIRE(status.ok());
    }
  }

 private:
  std::deque<Pulse> pulses_;
  std::deque<SmallReplica> replicas_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  uint64_t generations_ = 0;
  std::atomic<int> ended_{0};
};

std::string Undisturbed(const DataSource& data, const SmallReplicaOptions& options) {
  Team team(1, data, options);
  team.Form(1);
  team.Train(1, kSteps);
  return team.replica(0).Digest();
}

TEST_CASE("kept sums: after a break no survivor computes a shard again that it had finished", "[step]") {
  const MadeUpData data;
  const int passes = GENERATE(1, 2);
  const Memory memory = GENERATE(Memory::kOfHost, Memory::kHidden);
  CAPTURE(passes, static_cast<int>(memory));
  const SmallReplicaOptions options{.metagraph = SmallModel({.passes = passes}), .memory = memory};
  Team team(3, data, options);
  team.Form(3);
  team.Train(1, 2);
  const int64_t before[] = {team.shards(0), team.shards(1)};

  // Rank 2 computes nothing of step 3, and ends when the others have computed all of theirs.
  team.replica(2).runner->Cancel(true);
  std::vector<absl::Status> statuses(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back(
        [&, r] { statuses[r] = team.replica(r).runner->RunStep(team.communicator(r), 3, {}).status(); });
  }
  while (!team.waits(0) || !team.waits(1)) std::this_thread::yield();
  team.communicator(2).Abort(absl::AbortedError("rank 2 is lost"));
  for (std::thread& thread : threads) thread.join();
  REQUIRE_FALSE(statuses[0].ok());
  REQUIRE_FALSE(statuses[1].ok());
  REQUIRE(team.shards(0) == before[0] + 2);
  REQUIRE(team.shards(1) == before[1] + 1);
  team.Form(2);
  team.Train(3, 3);

  // The one shard of rank 2, and nothing else.
  CHECK(team.shards(0) + team.shards(1) == before[0] + before[1] + kShards);
  team.Train(4, kSteps);
  for (int r = 0; r < 2; ++r) CHECK(team.replica(r).Digest() == Undisturbed(data, options));
}

// Stops every rank of a step where it is once rank `watched` has executed so many nodes.
void Stop(Team& team, int ranks, int watched, uint64_t nodes) {
  const StepRunner& runner = *team.replica(watched).runner;
  const uint64_t from = runner.nodes_executed();
  while (runner.nodes_executed() < from + nodes && !team.waits(watched) && !team.any_ended()) std::this_thread::yield();
  for (int r = 0; r < ranks; ++r) team.replica(r).runner->Cancel(true);
  team.communicator(watched).Abort(absl::AbortedError("a rank is lost"));
}

// Steps until the last, most of them broken, over generations of two and three ranks; the third may come back with what
// it had claimed before. Returns the digest, or nothing when a break left ranks at different steps.
std::string TrainBroken(const DataSource& data, const SmallReplicaOptions& options, std::mt19937& random) {
  Team team(3, data, options);
  int ranks = 3;
  team.Form(ranks);
  for (int64_t step = 1; step <= kSteps;) {
    const bool breaks = random() % 4 != 0;
    const auto watched = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const uint64_t nodes = random() % 300;
    const std::vector<absl::Status> statuses = team.Step(step, [&] {
      if (breaks) Stop(team, ranks, watched, nodes);
    });
    const auto done = std::count_if(statuses.begin(), statuses.end(), [](const auto& status) { return status.ok(); });
    if (done == ranks) ++step;
    if (done != 0 && done != ranks) return "";
    for (int r = 0; r < ranks; ++r) team.replica(r).runner->Cancel(false);
    const bool third_keeps_up = team.replica(2).state->step() == step - 1;
    ranks = third_keeps_up && random() % 2 == 0 ? 3 : 2;
    team.Form(ranks);
  }
  return team.replica(0).Digest();
}

TEST_CASE("kept sums: wherever a step breaks, and however often, the bits are those of an undisturbed run", "[step]") {
  const MadeUpData data;
  const SmallReplicaOptions options{.metagraph = SmallModel({.passes = 2})};
  const std::string undisturbed = Undisturbed(data, options);
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const std::string digest = TrainBroken(data, options, random);
    CHECK((digest.empty() || digest == undisturbed));
  }
}

}  // namespace
}  // namespace lockstep::worker
