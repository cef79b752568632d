#include "worker/collectives/sockets/peer_tester.h"

#include <catch2/catch.hpp>
#include <optional>
#include <set>
#include <string>

#include "common/net/delaying_proxy.h"
#include "common/net/rpc.h"
#include "common/sync/queue.h"
#include "worker/collectives/sockets/peer_listener.h"
#include "worker/collectives/sockets/peer_probe.h"
#include "worker/collectives/sockets/silent_peer.h"

namespace lockstep::worker {
namespace {

// Far longer than anything here takes: reached only when it never happens.
constexpr absl::Duration kTooLong = absl::Seconds(30);
constexpr absl::Duration kOneWay = absl::Milliseconds(120);
constexpr Incarnation kNear{0, 1};
constexpr Incarnation kFar{0, 2};
constexpr Incarnation kSilent{0, 3};

// A peer that answers, and the same from afar.
struct Peers {
  Peers() {
    REQUIRE(near.ok());
    REQUIRE(far.ok());
    link.emplace(ParseHostPort((*far)->address())->port, kOneWay);
  }
  Member Near() const { return {kNear, "near", (*near)->address()}; }
  Member Far() const { return {kFar, "far", link->address()}; }

  absl::StatusOr<std::unique_ptr<PeerListener>> near = PeerListener::Start("127.0.0.1", kNear);
  absl::StatusOr<std::unique_ptr<PeerListener>> far = PeerListener::Start("127.0.0.1", kFar);
  std::optional<DelayingProxy> link;
};

Member Silent(const SilentPeer& peer) { return {kSilent, "silent", peer.address()}; }

struct Tested {
  explicit Tested(absl::Duration least, const std::string& host = "127.0.0.1")
      : tester({.own_host = host, .least = least, .most = absl::Hours(1), .done = [this](const PeersTested& result) {
                  results.Push(result);
                }}) {}

  BoundedQueue<PeersTested> results{64};
  PeerTester tester;
};

TEST_CASE("peer tester: a distant peer gets more time with each test, and is found", "[probe]") {
  const Peers peers;
  Tested tested(kOneWay / 4);

  tested.tester.Test(1, {peers.Far()});
  std::optional<PeersTested> result = tested.results.Pop(kTooLong);
  REQUIRE(result.has_value());
  CHECK(result->failed == std::vector<Incarnation>{kFar});
  CHECK_THAT(result->message, Catch::Contains("far: probing") && Catch::Contains("no answer in time"));
  for (uint64_t round = 2; round < 12 && result.has_value() && result->reached.empty(); ++round) {
    tested.tester.Test(round, {peers.Far()});
    result = tested.results.Pop(kTooLong);
  }

  REQUIRE(result.has_value());
  CHECK(result->reached == std::vector<Incarnation>{kFar});
}

TEST_CASE("peer tester: who answers is told of while others are still waited for", "[probe]") {
  const Peers peers;
  const SilentPeer silent;
  Tested tested(absl::Hours(1));

  tested.tester.Test(7, {Silent(silent), peers.Near()});

  const std::optional<PeersTested> result = tested.results.Pop(kTooLong);
  REQUIRE(result.has_value());
  CHECK(result->round == 7);
  CHECK(result->reached == std::vector<Incarnation>{kNear});
  CHECK(result->failed.empty());
}  // and the test of the silent one ends with the tester

TEST_CASE("peer tester: a peer that does not answer piles up nothing", "[probe]") {
  const SilentPeer silent;
  Tested tested(absl::Milliseconds(20));

  for (uint64_t round = 1; round <= 1000; ++round) tested.tester.Test(round, {Silent(silent)});

  std::optional<PeersTested> result;
  size_t results = 0;
  do {
    result = tested.results.Pop(kTooLong);
    REQUIRE(result.has_value());
    ++results;
  } while (result->round < 1000);
  CHECK(results < 500);  // a test takes longer than to ask for it
}

TEST_CASE("peer tester: a worker that cannot listen at its own address reaches nobody", "[probe]") {
  const Peers peers;
  Tested tested(kTooLong, "192.0.2.1");  // nobody's address (RFC 5737)

  tested.tester.Test(1, {peers.Near()});

  const std::optional<PeersTested> result = tested.results.Pop(kTooLong);
  REQUIRE(result.has_value());
  CHECK(result->failed == std::vector<Incarnation>{kNear});
  CHECK_THAT(result->message, Catch::Contains("cannot listen for peers on '192.0.2.1'"));
}

}  // namespace
}  // namespace lockstep::worker
