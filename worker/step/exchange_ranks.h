// Ranks that reduce synthetic gradients, for tests of GradientExchange. Each has its own device and buckets.
//
// Threading: an ExchangeRank is used by one thread.
#ifndef LOCKSTEP_WORKER_STEP_EXCHANGE_RANKS_H_
#define LOCKSTEP_WORKER_STEP_EXCHANGE_RANKS_H_

#include <barrier>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/status/check.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/device/choice/devices.h"
#include "worker/fakes/deferred_device.h"
#include "worker/fakes/loopback_device_communicator.h"
#include "worker/step/gradient_exchange.h"

namespace lockstep::worker {

inline constexpr int kExchangedShards = 6;
inline const std::vector<int64_t> kSizes = {100, 7, 350};

// The gradients of a logical shard, a function of its number.
inline std::vector<float> ShardGradient(const GradientLayout& layout, int shard) {
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

// The kind of memory of gradients, and whether they are reduced in host or device memory.
enum class Where { kHost, kDeferred, kHidden, kReducedOnDevice };

inline std::unique_ptr<device::Device> MakeDevice(Where where) {
  auto device = device::MakeDevice(device::DeviceKind::kReference, {}).value();
  if (where == Where::kHost) return device;
  const auto memory = where == Where::kDeferred ? device::DeferredMemory::kOfInner : device::DeferredMemory::kHidden;
  return device::MakeDeferredDevice(std::move(device), memory);
}

inline void MustOk(const absl::Status& status) { LS_CHECK(status.ok(), std::string(status.message()).c_str()); }

// One rank with its device and gradient buckets, which each shard overwrites.
struct ExchangeRank {
  ExchangeRank(Where where, ReductionMode mode, int shards)
      : stay(where == Where::kHost || where == Where::kDeferred),
        device(MakeDevice(where)),
        stream(device->NewStream().value()),
        layout(kSizes, 256) {
    const auto elements = static_cast<size_t>(layout.total_elements());
    gradients = device->Allocate(elements * sizeof(float)).value();
    GradientExchange::Options options{.layout = layout,
                                      .logical_shards = shards,
                                      .slots_per_shard = 1,
                                      .reduction = mode,
                                      .device = device.get(),
                                      .stream = stream.get(),
                                      .buckets = {},
                                      .buckets_stay = stay};
    for (const Bucket& bucket : layout.buckets()) options.buckets.push_back(at(bucket.range.offset));
    exchange = GradientExchange::Make(std::move(options)).value();
  }

  float* at(int64_t offset) const { return reinterpret_cast<float*>(gradients->address()) + offset; }
  void Write(const float* values, int64_t offset, int64_t size) {
    MustOk(stream->CopyToDevice(reinterpret_cast<std::byte*>(at(offset)), reinterpret_cast<const std::byte*>(values),
                                static_cast<size_t>(size) * sizeof(float)));
  }

  // Adds the first `buckets` buckets of a shard. Without `kept` they are overwritten with NaN afterwards; those that
  // stay are overwritten when the next shard begins.
  void AddBuckets(int shard, size_t buckets, bool kept) {
    flat.push_back(ShardGradient(layout, shard));
    if (stay) Write(rubbish.data(), 0, layout.total_elements());
    for (size_t b = 0; b < buckets; ++b) {
      const FlatRange range = layout.buckets()[b].range;
      Write(flat.back().data() + range.offset, range.offset, range.size);
      MustOk(exchange->AddBucket(static_cast<int>(b)));
      if (!kept && !stay) Write(rubbish.data(), range.offset, range.size);
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

  const bool stay;
  const std::unique_ptr<device::Device> device;
  const std::unique_ptr<device::Stream> stream;
  const GradientLayout layout;
  std::unique_ptr<device::Buffer> gradients;
  // Sources of queued copies; a deque does not move its elements.
  std::deque<std::vector<float>> flat;
  std::deque<double> totals;
  const std::vector<float> rubbish = std::vector<float>(1000, NAN);
  std::unique_ptr<GradientExchange> exchange;
};

inline const std::vector<int32_t> kExponents = {-48, -48, -48};

// Runs one attempt on every rank and returns each rank's result.
inline std::vector<Outcome> Reduce(Where where, int ranks, ReductionMode mode, int shards,
                                   const std::vector<int32_t>& exponents, int failing_rank = -1) {
  auto communicators = MakeLoopback({1, 1}, ranks);
  auto buckets = MakeLoopback({1, 1}, ranks);
  std::vector<Outcome> outcomes(ranks);
  std::vector<std::thread> threads;
  std::barrier all(ranks);
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      ExchangeRank rank(where, mode, shards);
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
      // Destroying a communicator would end the unfinished calls of other ranks.
      all.arrive_and_wait();
    });
  }
  for (auto& thread : threads) thread.join();
  return outcomes;
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_EXCHANGE_RANKS_H_
