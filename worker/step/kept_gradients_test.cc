// Attempts that break, and what of their sums the next attempt begins with.
#include <algorithm>
#include <barrier>
#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/fakes/loopback_device_communicator.h"
#include "worker/step/exchange_ranks.h"

namespace lockstep::worker {
namespace {

// What a rank does of an attempt before it breaks, if it has so much to do: whole shards, then buckets of the next one.
struct Part {
  int shards = 0;
  size_t buckets = 0;
};

// Attempts of one or two ranks, each broken after a part of what was to be computed but the last, which `last_ranks`
// make. `computed` gets, by rank and attempt, the shards that the rank had to compute.
std::vector<Outcome> ReduceBroken(Where where, const std::vector<std::vector<Part>>& broken,
                                  std::vector<std::vector<std::vector<int>>>& computed,
                                  int logical_shards = kExchangedShards, int last_ranks = 2) {
  constexpr int kRanks = 2;
  std::deque<ExchangeRank> ranks;
  std::vector<Outcome> outcomes(static_cast<size_t>(last_ranks));
  for (int r = 0; r < kRanks; ++r) ranks.emplace_back(where, ReductionMode::kExact, logical_shards);
  computed.assign(kRanks, {});
  for (size_t attempt = 0; attempt <= broken.size(); ++attempt) {
    const bool breaks = attempt < broken.size();
    const int size = breaks ? static_cast<int>(broken[attempt].size()) : last_ranks;
    auto communicators = MakeLoopback({1, attempt + 1}, size);
    auto buckets = MakeLoopback({1, attempt + 1}, size);
    std::vector<ShardClaim> claims;
    for (int r = 0; r < size; ++r) claims.push_back(ranks[r].exchange->Claim({5, 0}, kExponents));
    std::vector<std::thread> threads;
    std::barrier all(size);
    for (int r = 0; r < size; ++r) {
      threads.emplace_back([&, r] {
        ExchangeRank& rank = ranks[r];
        std::unique_ptr<Communicator> communicator = std::move(communicators[r]);
        if (where == Where::kReducedOnDevice) {
          communicator = MakeLoopbackOnDevice(std::move(communicator), std::move(buckets[r]), *rank.device).value();
        }
        MustOk(rank.exchange->Begin(*communicator, {5, 0}, kExponents, AssignShards(claims, logical_shards)));
        const std::vector<int> shards = rank.exchange->shards();
        computed[r].push_back(shards);
        const Part part = breaks ? broken[attempt][r] : Part{static_cast<int>(shards.size()), 0};
        const size_t whole = std::min(static_cast<size_t>(part.shards), shards.size());
        for (size_t i = 0; i < whole; ++i) rank.AddShard(shards[i], /*kept=*/false);
        if (part.buckets > 0 && whole < shards.size()) rank.AddBuckets(shards[whole], part.buckets, /*kept=*/false);
        auto word = rank.exchange->Finish({}, breaks ? absl::CancelledError("stopped") : absl::OkStatus());
        if (!breaks) {
          outcomes[r].status = word.status();
          if (word.ok()) {
            outcomes[r].word = *word;
            outcomes[r].sums = rank.Sums();
          }
        }
        all.arrive_and_wait();
      });
    }
    for (auto& thread : threads) thread.join();
  }
  return outcomes;
}

void CheckSame(const Outcome& outcome, const Outcome& alone) {
  REQUIRE(outcome.status.ok());
  CHECK(outcome.sums == alone.sums);
  CHECK(outcome.word.slots == alone.word.slots);
  CHECK(outcome.word.magnitudes == alone.word.magnitudes);
}

TEST_CASE("gradient exchange: what was summed before an attempt broke is not computed again", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kDeferred, Where::kHidden);
  CAPTURE(static_cast<int>(where));
  const Outcome alone = Reduce(Where::kHost, 1, ReductionMode::kExact, kExchangedShards, kExponents)[0];
  const size_t buckets = GradientLayout(kSizes, 256).buckets().size();
  REQUIRE(buckets > 1);
  std::vector<std::vector<std::vector<int>>> computed;

  // ExchangeRank 0 has all of its shards, then none; rank 1 breaks within a shard, and within the same one earlier.
  const std::vector<Outcome> outcomes =
      ReduceBroken(where, {{{3, 0}, {1, buckets - 1}}, {{0, 0}, {0, 1}}, {{0, 0}, {1, 0}}}, computed);

  CHECK(computed[0] == std::vector<std::vector<int>>{{0, 1, 2}, {5}, {5}, {5}});
  CHECK(computed[1] == std::vector<std::vector<int>>{{3, 4, 5}, {4}, {4}, {}});
  for (const Outcome& outcome : outcomes) {
    CheckSame(outcome, alone);
  }
}

TEST_CASE("gradient exchange: an attempt may break anywhere", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kHidden, Where::kReducedOnDevice);
  CAPTURE(static_cast<int>(where));
  const Outcome alone = Reduce(Where::kHost, 1, ReductionMode::kExact, kExchangedShards, kExponents)[0];
  const size_t buckets = GradientLayout(kSizes, 256).buckets().size();
  std::vector<std::vector<std::vector<int>>> computed;
  for (int shards = 0; shards < 3; ++shards) {
    for (size_t some = 0; some <= buckets; ++some) {
      for (const Outcome& outcome : ReduceBroken(where, {{{shards, some}, {2, buckets - some}}}, computed)) {
        CheckSame(outcome, alone);
      }
    }
  }
}

// Ranks of one shard each keep its values, and may have to add another shard to them.
TEST_CASE("gradient exchange: values that a broken attempt left are the same in the next one's sums", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kDeferred, Where::kHidden);
  CAPTURE(static_cast<int>(where));
  const Outcome alone = Reduce(Where::kHost, 1, ReductionMode::kExact, 2, kExponents)[0];
  const int buckets = static_cast<int>(GradientLayout(kSizes, 256).buckets().size());
  std::vector<std::vector<std::vector<int>>> computed;
  // How far a rank gets: buckets of its first shard, or all and the shard's end.
  const auto part = [&](int some) { return some > buckets ? Part{1, 0} : Part{0, static_cast<size_t>(some)}; };
  for (int first = 0; first <= buckets + 1; ++first) {
    for (int second = 0; second <= buckets + 1; ++second) {
      const std::vector<std::vector<std::vector<Part>>> breaks = {
          {{part(first), part(second)}},                      // values, then whatever comes
          {{part(first)}, {part(second)}},                    // integers twice
          {{part(first), part(second)}, {Part{}}},            // values, then integers
          {{part(first)}, {Part{}, part(second)}},            // integers, then values at one rank
          {{part(first), part(0)}, {part(0), part(second)}},  // values twice
      };
      for (size_t way = 0; way < breaks.size(); ++way) {
        for (const int last_ranks : {1, 2}) {
          CAPTURE(first, second, way, last_ranks);
          for (const Outcome& outcome : ReduceBroken(where, breaks[way], computed, 2, last_ranks)) {
            CheckSame(outcome, alone);
          }
        }
      }
    }
  }
}

TEST_CASE("gradient exchange: sums of another step, attempt or exponents, or of another state, are not claimed",
          "[step]") {
  ExchangeRank rank(Where::kHost, ReductionMode::kExact, kExchangedShards);
  const auto communicators = MakeLoopback({1, 1}, 1);
  MustOk(rank.exchange->Begin(*communicators[0], {5, 0}, kExponents, AssignShards(1, kExchangedShards)));
  rank.AddShard(0, /*kept=*/false);
  CHECK(rank.exchange->Claim({5, 0}, kExponents).empty());  // it is under way
  CHECK_FALSE(rank.exchange->Finish({}, absl::CancelledError("stopped")).ok());

  CHECK(rank.exchange->Claim({5, 0}, kExponents) == ShardClaim{{0}, -1});
  CHECK(rank.exchange->Claim({6, 0}, kExponents).empty());
  CHECK(rank.exchange->Claim({5, 1}, kExponents).empty());
  CHECK(rank.exchange->Claim({5, 0}, {-48, -48, -47}).empty());
  rank.exchange->DropSums();
  CHECK(rank.exchange->Claim({5, 0}, kExponents).empty());
}

TEST_CASE("gradient exchange: a device that reduces in place, and native sums, leave nothing to claim", "[step]") {
  const bool in_place = GENERATE(true, false);
  CAPTURE(in_place);
  ExchangeRank rank(in_place ? Where::kReducedOnDevice : Where::kHost,
                    in_place ? ReductionMode::kExact : ReductionMode::kFast, kExchangedShards);
  auto communicators = MakeLoopback({1, 1}, 2);
  std::unique_ptr<Communicator> communicator = std::move(communicators[0]);
  if (in_place) {
    auto buckets = MakeLoopback({1, 1}, 2);
    communicator = MakeLoopbackOnDevice(std::move(communicator), std::move(buckets[0]), *rank.device).value();
  }
  MustOk(rank.exchange->Begin(*communicator, {5, 0}, kExponents, AssignShards(2, kExchangedShards)));
  for (const int k : rank.exchange->shards()) rank.AddShard(k, /*kept=*/false);

  CHECK_FALSE(rank.exchange->Finish({}, absl::CancelledError("stopped")).ok());

  CHECK(rank.exchange->Claim({5, 0}, kExponents).empty());
}

}  // namespace
}  // namespace lockstep::worker
