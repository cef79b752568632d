// States between ranks: over host memory and from device to device, with the same bits, and nobody else's touched.
#include "worker/step/state_sync.h"

#include <algorithm>
#include <barrier>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/collectives/device_communicator.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/collectives/paired_communicator.h"
#include "worker/fakes/loopback_device_communicator.h"
#include "worker/step/small_replica.h"

namespace lockstep::worker {
namespace {

constexpr int kRanks = 3;

enum class Way { kHostMemory, kHostMemoryOfDevices, kDevices };

void MustSync(const absl::Status& status) { LS_CHECK(status.ok(), std::string(status.message()).c_str()); }

// Every byte of every tensor is a function of where it lies and of `seed`.
void Fill(HostState& state, int seed) {
  for (size_t i = 0; i < state.layout().tensors.size(); ++i) {
    size_t at = state.offset(static_cast<int>(i)) * 7;
    for (std::byte& byte : state.tensor(static_cast<int>(i))) byte = static_cast<std::byte>(at++ * 13 + seed * 101);
  }
}

struct Rank {
  Rank(const MetaGraph& metagraph, Way way, std::unique_ptr<Communicator> words, std::unique_ptr<Communicator> buckets)
      : device(MakeDeviceWith(device::DeviceKind::kReference,
                              way == Way::kHostMemory ? Memory::kOfHost : Memory::kHidden)),
        state(ReplicaState::Create(MakeStateLayout(metagraph), *device).value()),
        communicator(std::move(words)) {
    if (way == Way::kDevices) {
      communicator = MakeLoopbackOnDevice(std::move(communicator), std::move(buckets), *device).value();
    }
  }
  // Of the state itself: its copy on the host, but for what lives there alone, is forgotten first.
  std::string Digest() {
    if (!state->in_place()) {
      for (const ReplicaState::Run& run : state->on_device()) {
        std::memset(state->host().bytes().data() + run.begin, 0x5a, run.bytes);
      }
    }
    MustSync(state->Fetch());
    return state->host().Digest();
  }

  std::unique_ptr<device::Device> device;
  std::unique_ptr<ReplicaState> state;
  std::unique_ptr<Communicator> communicator;
};

// The digests with which the ranks end that each do `act` on a thread of its own.
std::vector<std::string> WithRanks(Way way, const std::function<void(Rank&, StateSync&)>& act) {
  const MetaGraph metagraph = SmallModel({});
  auto words = MakeLoopback({1, 1}, kRanks);
  auto buckets = MakeLoopback({1, 1}, kRanks);
  std::vector<std::string> digests(kRanks);
  std::vector<std::thread> threads;
  std::barrier all(kRanks);
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      Rank rank(metagraph, way, std::move(words[r]), std::move(buckets[r]));
      Pulse pulse;
      StateSync sync(*rank.communicator, {5, 0}, *rank.state, &pulse);
      LS_CHECK(sync.on_device() == (way == Way::kDevices), "states go from device to device where they can");
      act(rank, sync);
      LS_CHECK(way != Way::kDevices || pulse.progress() > 0, "whoever takes part shows that it goes on");
      digests[r] = rank.Digest();
      // Who closes its communicator ends the calls that others are still in.
      all.arrive_and_wait();
    });
  }
  for (auto& thread : threads) thread.join();
  return digests;
}

std::string DigestOfFill(int seed) {
  HostState state = HostState::Create(MakeStateLayout(SmallModel({}))).value();
  Fill(state, seed);
  return state.Digest();
}

TEST_CASE("state sync: a receiver ends with the sender's state, and who keeps its own has it untouched", "[step]") {
  const Way way = GENERATE(Way::kHostMemory, Way::kHostMemoryOfDevices, Way::kDevices);
  const int root = GENERATE(0, 1, 2);
  CAPTURE(static_cast<int>(way), root);
  const int receiver = (root + 1) % kRanks;

  const std::vector<std::string> digests = WithRanks(way, [&](Rank& rank, StateSync& sync) {
    const int me = rank.communicator->rank();
    Fill(rank.state->host(), me);
    MustSync(rank.state->Store());
    MustSync(sync.Send(root, me == receiver));
    if (me != receiver) return;
    LS_CHECK(rank.state->host().Digest() == DigestOfFill(root), "what came is on the host before it counts");
    MustSync(sync.Keep());
  });

  for (int r = 0; r < kRanks; ++r) CHECK(digests[r] == DigestOfFill(r == receiver ? root : r));
}

TEST_CASE("state sync: shares that the ranks hold become the whole state on each", "[step]") {
  const Way way = GENERATE(Way::kHostMemory, Way::kHostMemoryOfDevices, Way::kDevices);
  CAPTURE(static_cast<int>(way));

  const std::vector<std::string> digests = WithRanks(way, [&](Rank& rank, StateSync& sync) {
    HostState& host = rank.state->host();
    HostState whole = HostState::Create(host.layout()).value();
    Fill(whole, 40);
    const SharePlan plan = PlanShares(host.CheckpointLayout(), kRanks).value();
    const Share& own = plan.shares[static_cast<size_t>(rank.communicator->rank())];
    std::vector<char> bytes(own.bytes);
    whole.ReadShare(own, 0, absl::MakeSpan(bytes));
    // Of another state there is something everywhere else.
    Fill(host, rank.communicator->rank());
    MustSync(rank.state->Store());
    host.WriteShare(own, 0, bytes);
    MustSync(sync.Gather(plan));
    LS_CHECK(host.Digest() == DigestOfFill(40), "what came is on the host before it counts");
    MustSync(sync.Keep());
  });

  for (const std::string& digest : digests) CHECK(digest == DigestOfFill(40));
}

// Takes broadcasts of one rank, which end when they are waited for, and counts what is under way.
class CountingCommunicator final : public DeviceCommunicator {
 public:
  struct Counts {
    size_t calls = 0;
    size_t under_way = 0;
    size_t most = 0;
  };
  explicit CountingCommunicator(Counts& counts) : counts_(counts) {}

  Handle Reduce(Tag, const DeviceBucket&, device::Event&) override { return nullptr; }
  Handle Broadcast(Tag, int, std::byte*, size_t bytes, device::Event&) override {
    const size_t calls = (bytes + kDevicePieceBytes - 1) / kDevicePieceBytes;
    counts_.calls += calls;
    counts_.under_way += calls;
    counts_.most = std::max(counts_.most, counts_.under_way);
    return std::make_shared<Call>(counts_, calls);
  }
  void Abort(const absl::Status&) override {}

 private:
  class Call final : public Pending {
   public:
    Call(Counts& counts, size_t calls) : counts_(counts), calls_(calls) {}
    bool Done() const override { return calls_ == 0; }
    absl::Status Wait(absl::Duration) override {
      counts_.under_way -= std::exchange(calls_, 0);
      return absl::OkStatus();
    }

   private:
    Counts& counts_;
    size_t calls_;
  };

  Counts& counts_;
};

TEST_CASE("state sync: no more calls are under way than a device takes, however many tensors there are", "[step]") {
  StateLayout layout = MakeStateLayout(SmallModel({}));
  const size_t tensors = layout.tensors.size();
  for (size_t i = 0; layout.tensors.size() < 4 * kDeviceCallsUnderWay; ++i) {
    layout.tensors.push_back(layout.tensors[i % tensors]);
    absl::StrAppend(&layout.tensors.back().spec.name, ".", i);
  }
  const auto device = MakeDeviceWith(device::DeviceKind::kReference, Memory::kHidden);
  const auto state = ReplicaState::Create(layout, *device).value();
  CountingCommunicator::Counts counts;
  const auto communicator =
      PairCommunicators(std::move(MakeLoopback({1, 1}, 1)[0]), std::make_unique<CountingCommunicator>(counts));
  StateSync sync(*communicator, {5, 0}, *state, nullptr);

  REQUIRE(sync.Gather(PlanShares(state->host().CheckpointLayout(), 1).value()).ok());

  CHECK(counts.calls > kDeviceCallsUnderWay);
  CHECK(counts.most == kDeviceCallsUnderWay);
  CHECK(counts.under_way == 0);
}

}  // namespace
}  // namespace lockstep::worker
