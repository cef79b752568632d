#include "worker/step/gradient_exchange.h"

#include <algorithm>
#include <barrier>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/status/check.h"
#include "worker/collectives/exact_sum.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/collectives/loopback/loopback_device_communicator.h"
#include "worker/device/deferred/make_device.h"
#include "worker/device/devices.h"

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
  int non_finite = 0;
};

// Where gradients lie, and who reduces them.
enum class Where { kHost, kDeferred, kHidden, kReducedOnDevice };

std::unique_ptr<device::Device> MakeDevice(Where where) {
  auto device = device::MakeDevice(device::DeviceKind::kReference, {}).value();
  if (where == Where::kHost) return device;
  const auto memory = where == Where::kDeferred ? device::DeferredMemory::kOfInner : device::DeferredMemory::kHidden;
  return device::MakeDeferredDevice(std::move(device), memory);
}

void MustOk(const absl::Status& status) { LS_CHECK(status.ok(), std::string(status.message()).c_str()); }

// One rank: its device, with buckets that the next shard overwrites.
struct Rank {
  Rank(Where where, ReductionMode mode, int shards)
      : device(MakeDevice(where)), stream(device->NewStream().value()), layout(kSizes, 256) {
    const auto elements = static_cast<size_t>(layout.total_elements());
    gradients = device->Allocate(elements * sizeof(float)).value();
    GradientExchange::Options options{.layout = layout,
                                      .logical_shards = shards,
                                      .slots_per_shard = 1,
                                      .reduction = mode,
                                      .device = device.get(),
                                      .stream = stream.get()};
    for (const Bucket& bucket : layout.buckets()) options.buckets.push_back(at(bucket.range.offset));
    exchange = GradientExchange::Make(std::move(options)).value();
  }

  float* at(int64_t offset) const { return reinterpret_cast<float*>(gradients->address()) + offset; }
  void Write(const float* values, int64_t offset, int64_t size) {
    MustOk(stream->CopyToDevice(reinterpret_cast<std::byte*>(at(offset)), reinterpret_cast<const std::byte*>(values),
                                static_cast<size_t>(size) * sizeof(float)));
  }

  // The first `buckets` of them.
  void AddBuckets(int shard, size_t buckets, bool kept) {
    flat.push_back(ShardGradient(layout, shard));
    for (size_t b = 0; b < buckets; ++b) {
      const FlatRange range = layout.buckets()[b].range;
      Write(flat.back().data() + range.offset, range.offset, range.size);
      MustOk(exchange->AddBucket(static_cast<int>(b)));
      if (!kept) Write(rubbish.data(), range.offset, range.size);
    }
  }

  void AddShard(int shard, bool kept) {
    AddBuckets(shard, layout.buckets().size(), kept);
    totals.push_back(shard);
    MustOk(stream->CopyToDevice(reinterpret_cast<std::byte*>(exchange->shard_totals()),
                                reinterpret_cast<const std::byte*>(&totals.back()), sizeof(double)));
    MustOk(exchange->EndShard());
  }

  std::vector<float> Sums() {
    std::vector<float> sums;
    for (size_t t = 0; t < kSizes.size(); ++t) {
      std::vector<float> tensor(static_cast<size_t>(kSizes[t]));
      const float* const gradient = exchange->gradient(static_cast<int>(t));
      MustOk(stream->CopyToHost(reinterpret_cast<std::byte*>(tensor.data()),
                                reinterpret_cast<const std::byte*>(gradient), tensor.size() * sizeof(float)));
      MustOk(stream->Synchronize());
      sums.insert(sums.end(), tensor.begin(), tensor.end());
    }
    return sums;
  }

  const std::unique_ptr<device::Device> device;
  const std::unique_ptr<device::Stream> stream;
  const GradientLayout layout;
  std::unique_ptr<device::Buffer> gradients;
  // What queued copies read stays where it is.
  std::deque<std::vector<float>> flat;
  std::deque<double> totals;
  const std::vector<float> rubbish = std::vector<float>(1000, NAN);
  std::unique_ptr<GradientExchange> exchange;
};

// Runs one attempt on every rank and returns what each rank has.
std::vector<Outcome> Reduce(Where where, int ranks, ReductionMode mode, int shards,
                            const std::vector<int32_t>& exponents, int failing_rank = -1) {
  auto communicators = MakeLoopback({1, 1}, ranks);
  auto buckets = MakeLoopback({1, 1}, ranks);
  std::vector<Outcome> outcomes(ranks);
  std::vector<std::thread> threads;
  std::barrier all(ranks);
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      Rank rank(where, mode, shards);
      std::unique_ptr<Communicator> communicator = std::move(communicators[r]);
      if (where == Where::kReducedOnDevice) {
        communicator = MakeLoopbackOnDevice(std::move(communicator), std::move(buckets[r]), *rank.device).value();
      }
      MustOk(rank.exchange->Begin(*communicator, {5, 0}, exponents, AssignShards(ranks, shards)));
      absl::Status early;
      for (const int k : rank.exchange->shards()) {
        if (!early.ok()) break;
        rank.AddShard(k, GradientExchange::TakesAsItIs(shards, mode));
        if (r == failing_rank) early = absl::CancelledError("stopped");
      }
      ControlContribution slot;
      slot.free_to_save = r == 0;
      auto word = rank.exchange->Finish(slot, early);
      outcomes[r].status = word.status();
      if (word.ok()) {
        outcomes[r].word = *word;
        outcomes[r].sums = rank.Sums();
        if (mode == ReductionMode::kFast) outcomes[r].non_finite = rank.exchange->FirstNonFinite().value();
      }
      // Who closes its communicator ends the calls that others are still in.
      all.arrive_and_wait();
    });
  }
  for (auto& thread : threads) thread.join();
  return outcomes;
}

const std::vector<int32_t> kExponents = {-48, -48, -48};

TEST_CASE("gradient exchange: the sums have the same bits for any number of ranks, on every rank", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kDeferred, Where::kHidden, Where::kReducedOnDevice);
  CAPTURE(static_cast<int>(where));
  const Outcome alone = Reduce(Where::kHost, 1, ReductionMode::kExact, kShards, kExponents)[0];
  REQUIRE(alone.status.ok());

  for (int ranks = 1; ranks <= kShards; ++ranks) {
    for (const Outcome& outcome : Reduce(where, ranks, ReductionMode::kExact, kShards, kExponents)) {
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
  const Outcome outcome = Reduce(where, 3, ReductionMode::kExact, kShards, kExponents)[1];
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
  const Outcome outcome = Reduce(where, 2, ReductionMode::kExact, kShards, {kExponentUnset, -48, -48})[0];
  REQUIRE(outcome.status.ok());

  CHECK(Judge(outcome.word.magnitudes[0], kExponentUnset) == TensorVerdict::kRedo);
  CHECK(Judge(outcome.word.magnitudes[1], -48) == TensorVerdict::kGood);
}

TEST_CASE("gradient exchange: native sums are equal on every rank", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kDeferred, Where::kHidden, Where::kReducedOnDevice);
  CAPTURE(static_cast<int>(where));
  const std::vector<Outcome> outcomes = Reduce(where, 3, ReductionMode::kFast, kShards, kExponents);
  for (const Outcome& outcome : outcomes) {
    REQUIRE(outcome.status.ok());
    CHECK(outcome.sums == outcomes[0].sums);
    CHECK(outcome.non_finite == -1);
  }
  CHECK(outcomes[0].sums == Reduce(Where::kHost, 3, ReductionMode::kFast, kShards, kExponents)[0].sums);
}

// What a rank does of an attempt before it breaks, if it has so much to do: whole shards, then buckets of the next one.
struct Part {
  int shards = 0;
  size_t buckets = 0;
};

// Attempts of one or two ranks, each broken after a part of what was to be computed but the last, which `last_ranks`
// make. `computed` gets, by rank and attempt, the shards that the rank had to compute.
std::vector<Outcome> ReduceBroken(Where where, const std::vector<std::vector<Part>>& broken,
                                  std::vector<std::vector<std::vector<int>>>& computed, int logical_shards = kShards,
                                  int last_ranks = 2) {
  constexpr int kRanks = 2;
  std::deque<Rank> ranks;
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
        Rank& rank = ranks[r];
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

TEST_CASE("gradient exchange: what was summed before an attempt broke is not computed again", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kDeferred, Where::kHidden);
  CAPTURE(static_cast<int>(where));
  const Outcome alone = Reduce(Where::kHost, 1, ReductionMode::kExact, kShards, kExponents)[0];
  const size_t buckets = GradientLayout(kSizes, 256).buckets().size();
  REQUIRE(buckets > 1);
  std::vector<std::vector<std::vector<int>>> computed;

  // Rank 0 has all of its shards, then none; rank 1 breaks within a shard, and within the same one earlier.
  const std::vector<Outcome> outcomes =
      ReduceBroken(where, {{{3, 0}, {1, buckets - 1}}, {{0, 0}, {0, 1}}, {{0, 0}, {1, 0}}}, computed);

  CHECK(computed[0] == std::vector<std::vector<int>>{{0, 1, 2}, {5}, {5}, {5}});
  CHECK(computed[1] == std::vector<std::vector<int>>{{3, 4, 5}, {4}, {4}, {}});
  for (const Outcome& outcome : outcomes) {
    REQUIRE(outcome.status.ok());
    CHECK(outcome.sums == alone.sums);
    CHECK(outcome.word.slots == alone.word.slots);
    CHECK(outcome.word.magnitudes == alone.word.magnitudes);
  }
}

TEST_CASE("gradient exchange: an attempt may break anywhere", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kHidden, Where::kReducedOnDevice);
  CAPTURE(static_cast<int>(where));
  const Outcome alone = Reduce(Where::kHost, 1, ReductionMode::kExact, kShards, kExponents)[0];
  const size_t buckets = GradientLayout(kSizes, 256).buckets().size();
  std::vector<std::vector<std::vector<int>>> computed;
  for (int shards = 0; shards < 3; ++shards) {
    for (size_t some = 0; some <= buckets; ++some) {
      for (const Outcome& outcome : ReduceBroken(where, {{{shards, some}, {2, buckets - some}}}, computed)) {
        CHECK(outcome.sums == alone.sums);
        CHECK(outcome.word.slots == alone.word.slots);
        CHECK(outcome.word.magnitudes == alone.word.magnitudes);
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
            REQUIRE(outcome.status.ok());
            CHECK(outcome.sums == alone.sums);
            CHECK(outcome.word.slots == alone.word.slots);
            CHECK(outcome.word.magnitudes == alone.word.magnitudes);
          }
        }
      }
    }
  }
}

TEST_CASE("gradient exchange: sums of another step, attempt or exponents, or of another state, are not claimed",
          "[step]") {
  Rank rank(Where::kHost, ReductionMode::kExact, kShards);
  const auto communicators = MakeLoopback({1, 1}, 1);
  MustOk(rank.exchange->Begin(*communicators[0], {5, 0}, kExponents, AssignShards(1, kShards)));
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
  Rank rank(in_place ? Where::kReducedOnDevice : Where::kHost, in_place ? ReductionMode::kExact : ReductionMode::kFast,
            kShards);
  auto communicators = MakeLoopback({1, 1}, 2);
  std::unique_ptr<Communicator> communicator = std::move(communicators[0]);
  if (in_place) {
    auto buckets = MakeLoopback({1, 1}, 2);
    communicator = MakeLoopbackOnDevice(std::move(communicator), std::move(buckets[0]), *rank.device).value();
  }
  MustOk(rank.exchange->Begin(*communicator, {5, 0}, kExponents, AssignShards(2, kShards)));
  for (const int k : rank.exchange->shards()) rank.AddShard(k, /*kept=*/false);

  CHECK_FALSE(rank.exchange->Finish({}, absl::CancelledError("stopped")).ok());

  CHECK(rank.exchange->Claim({5, 0}, kExponents).empty());
}

TEST_CASE("gradient exchange: a rank that stops early ends the attempt on every rank", "[step]") {
  const Where where = GENERATE(Where::kHost, Where::kDeferred, Where::kHidden, Where::kReducedOnDevice);
  CAPTURE(static_cast<int>(where));
  const std::vector<Outcome> outcomes =
      Reduce(where, 3, ReductionMode::kExact, kShards, kExponents, /*failing_rank=*/1);
  for (const Outcome& outcome : outcomes) CHECK_FALSE(outcome.status.ok());
}

}  // namespace
}  // namespace lockstep::worker
