#include "worker/step/gradient_exchange.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "worker/collectives/exact_sum.h"
#include "worker/collectives/loopback/loopback_communicator.h"

namespace lockstep::worker {
namespace {

constexpr int kShards = 6;
const std::vector<int64_t> kSizes = {100, 7, 350};

// Gradients of a logical shard, a function of the shard alone.
std::vector<float> ShardGradient(const GradientLayout& layout, int shard) {
  std::vector<float> flat(layout.total_elements());
  uint64_t bits = 0x9e3779b97f4a7c15u * static_cast<uint64_t>(shard + 1);
  for (const FlatRange& range : layout.tensors()) {
    for (int64_t i = range.offset; i < range.end(); ++i) {
      bits = bits * 6364136223846793005u + 1442695040888963407u;
      flat[i] = std::ldexp(static_cast<float>(static_cast<int32_t>(bits >> 32)), -31 - static_cast<int>(bits >> 60));
    }
  }
  return flat;
}

struct Outcome {
  absl::Status status;
  std::vector<float> sums;
  ReducedWord word;
};

// Runs one attempt on every rank and returns what each rank has.
std::vector<Outcome> Reduce(int ranks, ReductionMode mode, int shards, const std::vector<int32_t>& exponents,
                            int failing_rank = -1) {
  auto communicators = MakeLoopback({1, 1}, ranks);
  std::vector<Outcome> outcomes(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const GradientLayout layout(kSizes, 256);
      GradientExchange exchange({.layout = layout, .logical_shards = shards, .slots_per_shard = 1, .reduction = mode});
      exchange.Begin(*communicators[r], {5, 0}, exponents);
      absl::Status early;
      std::vector<float> flat;
      for (int k = exchange.shards().first; k < exchange.shards().last; ++k) {
        flat = ShardGradient(layout, k);
        for (size_t b = 0; b < layout.buckets().size(); ++b) {
          const FlatRange range = layout.buckets()[b].range;
          const bool kept = GradientExchange::TakesAsItIs(shards, mode);
          std::vector<float> apart(flat.begin() + range.offset, flat.begin() + range.end());
          const absl::Span<float> bucket =
              kept ? absl::MakeSpan(flat).subspan(range.offset, range.size) : absl::MakeSpan(apart);
          exchange.AddBucket(static_cast<int>(b), bucket);
          if (!kept) std::fill(bucket.begin(), bucket.end(), NAN);
        }
        exchange.EndShard({SlotOf(static_cast<double>(k))});
        if (r == failing_rank) {
          early = absl::CancelledError("stopped");
          break;
        }
      }
      ControlContribution slot;
      slot.free_to_save = r == 0;
      auto word = exchange.Finish(slot, early);
      outcomes[r].status = word.status();
      if (!word.ok()) return;
      outcomes[r].word = *word;
      for (size_t t = 0; t < kSizes.size(); ++t) {
        const auto gradient = exchange.gradient(static_cast<int>(t));
        outcomes[r].sums.insert(outcomes[r].sums.end(), gradient.begin(), gradient.end());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return outcomes;
}

const std::vector<int32_t> kExponents = {-48, -48, -48};

TEST_CASE("gradient exchange: the sums have the same bits for any number of ranks, on every rank", "[step]") {
  const Outcome alone = Reduce(1, ReductionMode::kExact, kShards, kExponents)[0];
  REQUIRE(alone.status.ok());

  for (int ranks = 2; ranks <= kShards; ++ranks) {
    for (const Outcome& outcome : Reduce(ranks, ReductionMode::kExact, kShards, kExponents)) {
      REQUIRE(outcome.status.ok());
      CHECK(outcome.sums == alone.sums);
      CHECK(outcome.word.slots == alone.word.slots);
      CHECK(outcome.word.magnitudes == alone.word.magnitudes);
    }
  }
}

TEST_CASE("gradient exchange: the sums are those of the shards, and every rank's slot is in the word", "[step]") {
  const Outcome outcome = Reduce(3, ReductionMode::kExact, kShards, kExponents)[1];
  REQUIRE(outcome.status.ok());
  const GradientLayout layout(kSizes, 256);

  size_t at = 0;
  for (const FlatRange& range : layout.tensors()) {
    for (int64_t i = range.offset; i < range.end(); ++i, ++at) {
      double sum = 0;
      for (int k = 0; k < kShards; ++k) sum += ShardGradient(layout, k)[i];
      REQUIRE(outcome.sums[at] == Approx(sum).margin(1e-9));
    }
  }
  REQUIRE(outcome.word.control.slots.size() == 3);
  CHECK(outcome.word.control.slots[0].free_to_save);
  CHECK_FALSE(outcome.word.control.slots[1].free_to_save);
  for (int k = 0; k < kShards; ++k) CHECK(DoubleOf(outcome.word.slots[k]) == k);
}

TEST_CASE("gradient exchange: with one logical shard its gradient is the sum, bit by bit", "[step]") {
  const Outcome outcome = Reduce(1, ReductionMode::kExact, 1, {kExponentUnset, kExponentUnset, kExponentUnset})[0];
  REQUIRE(outcome.status.ok());
  const GradientLayout layout(kSizes, 256);
  const std::vector<float> flat = ShardGradient(layout, 0);

  size_t at = 0;
  for (const FlatRange& range : layout.tensors()) {
    for (int64_t i = range.offset; i < range.end(); ++i, ++at) {
      REQUIRE(std::bit_cast<uint32_t>(outcome.sums[at]) == std::bit_cast<uint32_t>(flat[i]));
    }
  }
}

TEST_CASE("gradient exchange: a tensor without an exponent only has its largest magnitude found", "[step]") {
  const Outcome outcome = Reduce(2, ReductionMode::kExact, kShards, {kExponentUnset, -48, -48})[0];
  REQUIRE(outcome.status.ok());

  CHECK(Judge(outcome.word.magnitudes[0], kExponentUnset) == TensorVerdict::kRedo);
  CHECK(Judge(outcome.word.magnitudes[1], -48) == TensorVerdict::kGood);
}

TEST_CASE("gradient exchange: native sums are equal on every rank", "[step]") {
  const std::vector<Outcome> outcomes = Reduce(3, ReductionMode::kFast, kShards, kExponents);
  for (const Outcome& outcome : outcomes) {
    REQUIRE(outcome.status.ok());
    CHECK(outcome.sums == outcomes[0].sums);
  }
}

TEST_CASE("gradient exchange: a rank that stops early ends the attempt on every rank", "[step]") {
  const std::vector<Outcome> outcomes = Reduce(3, ReductionMode::kExact, kShards, kExponents, /*failing_rank=*/1);
  for (const Outcome& outcome : outcomes) CHECK_FALSE(outcome.status.ok());
}

}  // namespace
}  // namespace lockstep::worker
