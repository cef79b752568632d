#include "worker/collectives/sockets/peer_probe.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "worker/collectives/sockets/peer_listener.h"
#include "worker/collectives/sockets/silent_peer.h"

namespace lockstep::worker {
namespace {

constexpr Incarnation kProbed{.high = 0x0123456789abcdef, .low = 0xfedcba9876543210};

TEST_CASE("peer probe: a worker answers with its incarnation, as often as asked", "[probe]") {
  auto server = PeerListener::Start("127.0.0.1", kProbed);
  REQUIRE(server.ok());

  for (int i = 0; i < 20; ++i) {
    const absl::Status status = ProbePeer((*server)->address(), kProbed, absl::Seconds(20));
    INFO(status.ToString());
    CHECK(status.ok());
  }
}

TEST_CASE("peer probe: another incarnation at the address is told apart, and named", "[probe]") {
  auto server = PeerListener::Start("127.0.0.1", kProbed);
  REQUIRE(server.ok());

  const absl::Status status = ProbePeer((*server)->address(), {.high = 1, .low = 2}, absl::Seconds(20));

  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(std::string(status.message()).find(kProbed.ToString()) != std::string::npos);
}

TEST_CASE("peer probe: an address that this machine does not have is told", "[probe]") {
  CHECK(CanListen("127.0.0.1").ok());
  CHECK_THAT(std::string(CanListen("192.0.2.1").message()),
             Catch::Contains("cannot listen for peers on '192.0.2.1'") && Catch::Contains("--peer-host"));
}

TEST_CASE("peer probe: a worker that is gone, silent or unknown is told apart from one that answers", "[probe]") {
  auto server = PeerListener::Start("127.0.0.1", kProbed);
  REQUIRE(server.ok());
  const std::string address = (*server)->address();
  server->reset();
  CHECK(ProbePeer(address, kProbed, absl::Seconds(20)).code() == absl::StatusCode::kUnavailable);

  const SilentPeer silent;
  CHECK(ProbePeer(silent.address(), kProbed, absl::Milliseconds(20)).code() == absl::StatusCode::kDeadlineExceeded);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  close(ends[1]);
  CHECK(ProbePeer(silent.address(), kProbed, absl::Hours(1), ends[0]).code() == absl::StatusCode::kCancelled);
  close(ends[0]);

  CHECK(ProbePeer("no-such-host.invalid:1", kProbed, absl::Seconds(1)).code() == absl::StatusCode::kUnavailable);
  CHECK(ProbePeer("127.0.0.1", kProbed, absl::Seconds(1)).code() == absl::StatusCode::kInvalidArgument);
  CHECK(ProbePeer("127.0.0.1:99999", kProbed, absl::Seconds(1)).code() == absl::StatusCode::kInvalidArgument);
  CHECK(PeerListener::Start("no-such-host.invalid", kProbed).status().code() == absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace lockstep::worker
