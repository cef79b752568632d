#include "worker/step/gradient_exchange.h"

#include <bit>
#include <catch2/catch.hpp>
#include <vector>

#include "worker/arithmetic/exact_sum.h"
#include "worker/step/exchange_ranks.h"
#include "worker/step/gradient_memory.h"

namespace lockstep::worker {
namespace {

TEST_CASE("gradient exchange: the sums have the same bits for any number of ranks, on every rank", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kDeferred, Where::kHidden, Where::kReducedOnDevice);
  CAPTURE(static_cast<int>(where));
  const Outcome alone = Reduce(Where::kHost, 1, ReductionMode::kExact, kExchangedShards, kExponents)[0];
  REQUIRE(alone.status.ok());

  for (int ranks = 1; ranks <= kExchangedShards; ++ranks) {
    for (const Outcome& outcome : Reduce(where, ranks, ReductionMode::kExact, kExchangedShards, kExponents)) {
      REQUIRE(outcome.status.ok());
      CHECK(outcome.sums == alone.sums);
      CHECK(outcome.word.slots == alone.word.slots);
      CHECK(outcome.word.magnitudes == alone.word.magnitudes);
    }
  }
}

TEST_CASE("gradient exchange: the sums are those of the shards, and every rank's slot is in the word", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kDeferred, Where::kHidden, Where::kReducedOnDevice);
  CAPTURE(static_cast<int>(where));
  const Outcome outcome = Reduce(where, 3, ReductionMode::kExact, kExchangedShards, kExponents)[1];
  REQUIRE(outcome.status.ok());
  const GradientLayout layout(kSizes, 256);

  size_t at = 0;
  for (const FlatRange& range : layout.tensors()) {
    for (int64_t i = range.offset; i < range.end(); ++i, ++at) {
      double sum = 0;
      for (int k = 0; k < kExchangedShards; ++k) sum += ShardGradient(layout, k)[i];
      REQUIRE(outcome.sums[at] == Approx(sum).margin(1e-9));
    }
  }
  REQUIRE(outcome.word.control.slots.size() == 3);
  CHECK(outcome.word.control.slots[0].free_to_save);
  CHECK_FALSE(outcome.word.control.slots[1].free_to_save);
  for (int k = 0; k < kExchangedShards; ++k) CHECK(DoubleOf(outcome.word.slots[k]) == k);
}

TEST_CASE("gradient exchange: with one logical shard its gradient is the sum, bit by bit", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kDeferred, Where::kHidden, Where::kReducedOnDevice);
  CAPTURE(static_cast<int>(where));
  const Outcome outcome =
      Reduce(where, 1, ReductionMode::kExact, 1, {kExponentUnset, kExponentUnset, kExponentUnset})[0];
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
  const Where where = GENERATE(Where::kHost, Where::kDeferred, Where::kHidden, Where::kReducedOnDevice);
  CAPTURE(static_cast<int>(where));
  const Outcome outcome = Reduce(where, 2, ReductionMode::kExact, kExchangedShards, {kExponentUnset, -48, -48})[0];
  REQUIRE(outcome.status.ok());

  CHECK(Judge(outcome.word.magnitudes[0], kExponentUnset) == TensorVerdict::kRedo);
  CHECK(Judge(outcome.word.magnitudes[1], -48) == TensorVerdict::kGood);
}

TEST_CASE("gradient exchange: gradients lie apart where a rank may have a single shard of several", "[step]") {
  const auto lie = [](Where where, int shards, int64_t ranks, ReductionMode mode = ReductionMode::kExact) {
    return GradientMemoryFor(*MakeDevice(where), shards, ranks, mode);
  };
  CHECK(lie(Where::kHost, 1, 4096) == GradientMemory::kUntilNextPass);
  CHECK(lie(Where::kHost, 2, 2) == GradientMemory::kApart);
  CHECK(lie(Where::kHost, 3, 2) == GradientMemory::kApart);
  CHECK(lie(Where::kHost, 4, 2) == GradientMemory::kUntilRead);
  CHECK(lie(Where::kHost, 8, 4096) == GradientMemory::kApart);
  CHECK(lie(Where::kHost, 8, 1) == GradientMemory::kUntilRead);
  CHECK(lie(Where::kHidden, 2, 2) == GradientMemory::kUntilRead);
  CHECK(lie(Where::kHost, 2, 2, ReductionMode::kFast) == GradientMemory::kUntilRead);
}

TEST_CASE("gradient exchange: native sums are equal on every rank", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kDeferred, Where::kHidden, Where::kReducedOnDevice);
  CAPTURE(static_cast<int>(where));
  const std::vector<Outcome> outcomes = Reduce(where, 3, ReductionMode::kFast, kExchangedShards, kExponents);
  for (const Outcome& outcome : outcomes) {
    REQUIRE(outcome.status.ok());
    CHECK(outcome.sums == outcomes[0].sums);
    CHECK(outcome.non_finite == -1);
  }
  CHECK(outcomes[0].sums == Reduce(Where::kHost, 3, ReductionMode::kFast, kExchangedShards, kExponents)[0].sums);
}

TEST_CASE("gradient exchange: a rank that stops early ends the attempt on every rank", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kDeferred, Where::kHidden, Where::kReducedOnDevice);
  CAPTURE(static_cast<int>(where));
  const std::vector<Outcome> outcomes =
      Reduce(where, 3, ReductionMode::kExact, kExchangedShards, kExponents, /*failing_rank=*/1);
  for (const Outcome& outcome : outcomes) CHECK_FALSE(outcome.status.ok());
}

}  // namespace
}  // namespace lockstep::worker
