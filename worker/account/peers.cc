#include "worker/account/peers.h"

#include <numeric>
#include <vector>

#include "common/status/status_macros.h"
#include "worker/collectives/completion.h"
#include "worker/collectives/control_word.h"
#include "worker/collectives/device_communicator.h"
#include "worker/step/shard_claims.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {
namespace {

constexpr Generation kGeneration = {1, 1};

class WrittenReductions final : public DeviceCommunicator {
 public:
  explicit WrittenReductions(const PeersOptions& options) : options_(options) {}
  Handle Reduce(Tag, const DeviceBucket& bucket, device::Event&) override {
    options_.tape->Queue({.kind = TapeEntry::Kind::kReduce,
                          .stream = options_.stream,
                          .elements = bucket.size,
                          .exact = bucket.sums != nullptr});
    return EndedHandle(absl::OkStatus());
  }
  Handle Broadcast(Tag, int, std::byte*, size_t, device::Event&) override { return EndedHandle(absl::OkStatus()); }
  void Abort(const absl::Status&) override {}

 private:
  const PeersOptions options_;
};

class Peers final : public Communicator {
 public:
  explicit Peers(const PeersOptions& options) : options_(options), reductions_(options) {
    if (options_.ranks > 1) shards_ = AssignShards(options_.ranks, options_.logical_shards).shards;
  }

  Generation generation() const override { return kGeneration; }
  int rank() const override { return 0; }
  int size() const override { return options_.ranks; }

  Handle AllGather(Tag tag, absl::Span<char> bytes, absl::Span<const int64_t> block_bytes) override {
    return EndedHandle(tag.attempt == kClaimAttempt ? FillClaims(bytes, block_bytes)
                                                    : FillWords(tag, bytes, block_bytes));
  }
  Handle AllReduceExact(Tag, ExactAddends, absl::Span<float>, absl::Span<const ExactRun>) override {
    return EndedHandle(absl::OkStatus());
  }
  Handle AllReduceSum(Tag, absl::Span<int64_t>) override { return EndedHandle(absl::OkStatus()); }
  Handle AllReduceSum(Tag, absl::Span<float>) override { return EndedHandle(absl::OkStatus()); }
  Handle Broadcast(Tag, int, absl::Span<char>) override { return EndedHandle(absl::OkStatus()); }
  DeviceCommunicator* on_device() override { return options_.ranks > 1 ? &reductions_ : nullptr; }
  void Abort(const absl::Status& cause) override { status_ = AsAborted(cause); }
  absl::Status status() const override { return status_; }
  uint64_t bytes_moved() const override { return 0; }

 private:
  absl::Status FillClaims(absl::Span<char> bytes, absl::Span<const int64_t> block_bytes) const {
    size_t at = static_cast<size_t>(block_bytes[0]);
    for (int rank = 1; rank < options_.ranks; ++rank) {
      const auto size = static_cast<size_t>(block_bytes[static_cast<size_t>(rank)]);
      PackClaim({}, options_.logical_shards, bytes.subspan(at, size));
      at += size;
    }
    return absl::OkStatus();
  }

  // How many slots a shard has follows from the size of the own block.
  absl::Status FillWords(Tag tag, absl::Span<char> bytes, absl::Span<const int64_t> block_bytes) const {
    WordShape shape{.generation = kGeneration,
                    .ranks = options_.ranks,
                    .logical_shards = options_.logical_shards,
                    .tensors = options_.tensors,
                    .shards = shards_};
    if (options_.ranks == 1) return absl::OkStatus();
    const int64_t slots = block_bytes[0] - WordBlockBytes(shape)[0];
    shape.slots_per_shard = static_cast<int>(slots / static_cast<int64_t>(sizeof(uint64_t) * shards_[0].size()));
    for (int rank = 1; rank < options_.ranks; ++rank) {
      RankWord word{.tag = tag};
      word.magnitudes.resize(static_cast<size_t>(shape.tensors));
      word.slots.resize(shards_[static_cast<size_t>(rank)].size() * static_cast<size_t>(shape.slots_per_shard));
      LS_RETURN_IF_ERROR(PackWord(shape, rank, word, bytes));
    }
    return absl::OkStatus();
  }

  const PeersOptions options_;
  std::vector<std::vector<int>> shards_;
  WrittenReductions reductions_;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<Communicator> MakePeers(const PeersOptions& options) { return std::make_unique<Peers>(options); }

}  // namespace lockstep::worker
