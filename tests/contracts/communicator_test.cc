#include <catch2/catch.hpp>
#include <mutex>
#include <thread>

#include "tests/contracts/communicator_contract.h"
#include "tests/contracts/local_sockets.h"
#include "tests/contracts/summed_in_shared_memory.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/collectives/rendezvous_store.h"
#include "worker/fakes/deferred_communicator.h"

namespace lockstep::worker {
namespace {

using Group = std::vector<std::unique_ptr<Communicator>>;

Group MakeLoopbackGroup(int size) { return MakeLoopback({.term = 1, .counter = 1}, size); }

Group MakeDeferredGroup(int size) {
  Group group;
  for (auto& inner : MakeLoopbackGroup(size)) group.push_back(MakeDeferred(std::move(inner)));
  return group;
}

// The connections of a group.
struct Way {
  PeerSecurity security = PeerSecurity::kEncryptedBeyondHost;
  bool host_sockets = false;
  bool shares_memory = false;
};

// Enough for the exact sums of a check.
constexpr size_t kSharedBytes = 8 << 20;

// Each rank forms on a thread of its own. Pieces are small, so that short buffers have many of them.
Group FormGroup(RendezvousStore& store, Generation generation, int size, absl::Duration ask_every, Way way = {}) {
  Group group(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  std::vector<absl::Status> statuses(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto memory = SharedMemory::Make();
      std::unique_ptr<device::Buffer> buffer;
      if (way.shares_memory) buffer = memory->Allocate(kSharedBytes).value();
      auto formed = FormSockets(
          {.group =
               {.generation = generation, .rank = rank, .size = size, .ask_every = ask_every, .piece_elements = 1000},
           .security = way.security,
           .host_sockets = way.host_sockets,
           .memory = way.shares_memory ? memory : nullptr},
          store);
      statuses[static_cast<size_t>(rank)] = formed.status();
      if (!formed.ok()) return;
      std::unique_ptr<Communicator>& formed_rank = group[static_cast<size_t>(rank)];
      formed_rank = *std::move(formed);
      if (buffer == nullptr) return;
      formed_rank = std::make_unique<SummedInSharedMemory>(std::move(formed_rank), std::move(buffer));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) {
    INFO(status.ToString());
    REQUIRE(status.ok());
  }
  return group;
}

GroupFactory Over(Way way) {
  return [way](int size) {
    InProcessStore store;
    return FormGroup(store, {.term = 3, .counter = 9}, size, absl::Seconds(20), way);
  };
}

struct Kind {
  const char* name;
  GroupFactory make;
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {{"loopback", MakeLoopbackGroup},
                                          {"deferred", MakeDeferredGroup},
                                          {"sockets", Over({})},
                                          {"encrypted sockets", Over({.security = PeerSecurity::kEncrypted})},
                                          {"host sockets", Over({.host_sockets = true})},
                                          {"shared memory", Over({.host_sockets = true, .shares_memory = true})}};
  return kinds;
}

TEST_CASE("communicator: sums are equal on every rank for 1 to 5 ranks and any length", "[contract]") {
  for (const Kind& kind : Kinds()) {
    for (int size = 1; size <= 5; ++size) {
      INFO(kind.name << " with " << size);
      CheckSums(kind.make, size);
    }
  }
}

TEST_CASE("communicator: gather and broadcast copy every block to every rank", "[contract]") {
  for (const Kind& kind : Kinds()) {
    for (int size = 1; size <= 5; ++size) {
      INFO(kind.name << " with " << size);
      CheckGatherAndBroadcast(kind.make, size);
    }
  }
}

TEST_CASE("communicator: a rank may be far ahead of the others", "[contract]") {
  for (const Kind& kind : Kinds()) {
    for (const int size : {2, 3}) {
      INFO(kind.name << " with " << size);
      CheckManyCallsAhead(kind.make, size);
    }
  }
}

TEST_CASE("communicator: calls end in the order in which they were made", "[contract]") {
  for (const Kind& kind : Kinds()) {
    for (const int size : {1, 2, 4}) {
      INFO(kind.name << " with " << size);
      CheckOrderOfCalls(kind.make, size);
    }
  }
}

TEST_CASE("communicator: sizes that cannot be meant are refused and break nothing", "[contract]") {
  for (const Kind& kind : Kinds()) {
    INFO(kind.name);
    CheckBadSizes(kind.make);
  }
}

TEST_CASE("communicator: an abort on any rank ends the blocked calls of all", "[contract]") {
  for (const Kind& kind : Kinds()) {
    for (const int size : {2, 4}) {
      INFO(kind.name << " with " << size);
      CheckAbortFromEachSide(kind.make, size);
    }
  }
}

TEST_CASE("communicator: after an abort every call ends with Aborted and the first cause", "[contract]") {
  for (const Kind& kind : Kinds()) {
    for (const int size : {1, 3}) {
      INFO(kind.name << " with " << size);
      CheckUseAfterAbort(kind.make, size);
    }
  }
}

TEST_CASE("communicator: ranks with different tags never exchange a value", "[contract]") {
  CheckDifferentTags(MakeLoopbackGroup);
  CheckDifferentTags(MakeDeferredGroup);
  CheckDifferentTags([](int size) {
    InProcessStore store;
    return FormGroup(store, {.term = 1, .counter = 2}, size, absl::Milliseconds(5));
  });
}

TEST_CASE("communicator: closing one rank ends the calls of the others", "[contract]") {
  for (const Kind& kind : Kinds()) {
    INFO(kind.name);
    CheckClosingEndsPeers(kind.make, 3);
  }
}

}  // namespace
}  // namespace lockstep::worker
