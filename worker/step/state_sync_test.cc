// States between ranks: over host memory and from device to device, with the same bits, and nobody else's touched.
#include "worker/step/state_sync.h"

#include <barrier>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "worker/collectives/loopback/loopback_communicator.h"
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

}  // namespace
}  // namespace lockstep::worker
