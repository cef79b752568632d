#include "common/net/unproved_connections.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/net/listen.h"
#include "common/net/socket_name.h"

namespace lockstep {
namespace {

// A connection to ourselves.
struct Pair {
  explicit Pair(const Listeners& listeners) : near(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(listeners.port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(near.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    pollfd entry = {.fd = listeners.sockets[0].get(), .events = POLLIN, .revents = 0};
    REQUIRE(poll(&entry, 1, -1) == 1);
    far = Descriptor(accept(listeners.sockets[0].get(), nullptr, nullptr));
    REQUIRE(far.is_open());
  }
  Descriptor Same() const { return Descriptor(dup(far.get())); }
  std::string Peer() const { return absl::StrCat("ipv4:", PeerOf(far.get())); }
  bool IsOpen() const {
    pollfd entry = {.fd = near.get(), .events = POLLIN, .revents = 0};
    return poll(&entry, 1, 0) == 0;
  }

  Descriptor near;
  Descriptor far;
};

TEST_CASE("unproved connections: there is room again when one has proved itself, is closed, or has had its time",
          "[net]") {
  const Listeners listeners = ListenAt({.host = "127.0.0.1", .port = 0}).value();
  UnprovedConnections unproved(3);
  const absl::Time begin = absl::UnixEpoch();
  std::vector<Pair> pairs;
  for (int i = 0; i < 3; ++i) pairs.emplace_back(listeners);
  for (int i = 0; i < 3; ++i) {
    CHECK(unproved.MakeRoom(begin));
    unproved.Add(begin + absl::Seconds(i), pairs[static_cast<size_t>(i)].Same());
  }
  CHECK_FALSE(unproved.MakeRoom(begin + absl::Seconds(4)));
  CHECK(pairs[0].IsOpen());

  unproved.Proved("ipv4:127.0.0.1:1");  // nobody's
  CHECK_FALSE(unproved.MakeRoom(begin + absl::Seconds(4)));
  unproved.Proved(pairs[1].Peer());
  CHECK(unproved.MakeRoom(begin + absl::Seconds(4)));
  CHECK(unproved.size() == 2);

  Pair fourth(listeners);
  unproved.Add(begin + absl::Seconds(4), fourth.Same());
  CHECK_FALSE(unproved.MakeRoom(begin + absl::Seconds(4)));
  fourth.near.Close();
  CHECK(unproved.MakeRoom(begin + absl::Seconds(4)));

  Pair fifth(listeners);
  unproved.Add(begin + absl::Seconds(4), fifth.Same());
  CHECK(unproved.MakeRoom(begin + absl::Seconds(5)));
  CHECK_FALSE(pairs[0].IsOpen());  // the oldest was shut down
  CHECK(pairs[1].IsOpen());        // had proved itself
  CHECK(pairs[2].IsOpen());
  CHECK(unproved.size() == 2);
}

TEST_CASE("unproved connections: an address has one text, however gRPC and the kernel write it", "[net]") {
  CHECK(PeerText("ipv4:10.0.0.1:5") == "10.0.0.1:5");
  CHECK(PeerText("10.0.0.1:5") == "10.0.0.1:5");
  CHECK(PeerText("[::ffff:10.0.0.1]:5") == "10.0.0.1:5");
  CHECK(PeerText("ipv6:%5B::1%5D:5") == PeerText("[::1]:5"));
  CHECK(PeerText("ipv6:[::1]:5") == "::1:5");
  CHECK(PeerText("ipv6:%5Bfe80::a%25eth0%5D:5") == PeerText("[FE80::a%eth0]:5"));
  CHECK(PeerText("unix:") == "unix:");
  CHECK(PeerText("") == "");
}

}  // namespace
}  // namespace lockstep
