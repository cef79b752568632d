#include "worker/collectives/sockets/peer_stream.h"

#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

namespace lockstep::worker {
namespace {

using StreamWant = TlsHandshake::Want;
using Ends = std::array<std::unique_ptr<PeerStream>, 2>;

const std::string kKey(32, 'k');

std::array<Descriptor, 2> SocketPair() {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::unique_ptr<TlsHandshake> Handshake(Descriptor socket, const std::string& key, bool dials, bool encrypts) {
  return MakeTlsHandshake(std::move(socket), key, dials, encrypts).value();
}

// Both ends in turns, until they are done or one fails.
absl::Status Shake(TlsHandshake& dialler, TlsHandshake& listener) {
  for (int turn = 0; turn < 20; ++turn) {
    const auto one = dialler.Step();
    const auto other = listener.Step();
    if (!one.ok()) return one.status();
    if (!other.ok()) return other.status();
    if (*one == StreamWant::kNothing && *other == StreamWant::kNothing) return absl::OkStatus();
  }
  return absl::DeadlineExceededError("the handshake does not end");
}

Ends Connect(bool encrypts) {
  auto sockets = SocketPair();
  const auto dialler = Handshake(std::move(sockets[0]), kKey, true, encrypts);
  const auto listener = Handshake(std::move(sockets[1]), kKey, false, encrypts);
  const absl::Status shaken = Shake(*dialler, *listener);
  INFO(shaken.ToString());
  REQUIRE(shaken.ok());
  return {dialler->Finish(), listener->Finish()};
}

iovec Of(std::string& bytes) { return {.iov_base = bytes.data(), .iov_len = bytes.size()}; }

// All of `bytes` through the streams, both of which say when they take no more.
std::string Through(PeerStream& from, PeerStream& to, std::string bytes) {
  std::string came(bytes.size(), 'x');
  size_t sent = 0, have = 0;
  while (have < came.size()) {
    if (sent < bytes.size()) {
      const iovec part = {.iov_base = bytes.data() + sent, .iov_len = bytes.size() - sent};
      const auto taken = from.Write({&part, 1});
      REQUIRE(taken.ok());
      sent += *taken;
    }
    REQUIRE(from.Flush().ok());
    const iovec part = {.iov_base = came.data() + have, .iov_len = came.size() - have};
    const auto read = to.Read({&part, 1});
    REQUIRE(read.ok());
    have += *read;
  }
  return came;
}

TEST_CASE("peer stream: bytes go both ways, encrypted or not", "[sockets]") {
  const bool encrypts = GENERATE(false, true);
  CAPTURE(encrypts);
  const Ends ends = Connect(encrypts);
  std::string large(3 << 20, '\0');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * i >> 7);

  CHECK(Through(*ends[0], *ends[1], "to the listener") == "to the listener");
  CHECK(Through(*ends[1], *ends[0], large) == large);
  CHECK(Through(*ends[0], *ends[1], large) == large);
}

TEST_CASE("peer stream: without the key nobody gets in, on either side", "[sockets]") {
  const bool dialler_is_wrong = GENERATE(false, true);
  auto sockets = SocketPair();
  const std::string other(32, 'o');
  const auto dialler = Handshake(std::move(sockets[0]), dialler_is_wrong ? other : kKey, true, true);
  const auto listener = Handshake(std::move(sockets[1]), dialler_is_wrong ? kKey : other, false, true);

  CHECK_FALSE(Shake(*dialler, *listener).ok());
}

TEST_CASE("peer stream: what is no handshake is refused", "[sockets]") {
  auto sockets = SocketPair();
  const auto listener = Handshake(std::move(sockets[1]), kKey, false, true);
  const std::string garbage(100, 'g');
  REQUIRE(send(sockets[0].get(), garbage.data(), garbage.size(), 0) == 100);

  CHECK(listener->Step().status().code() == absl::StatusCode::kUnauthenticated);
}

TEST_CASE("peer stream: the end of the other side is told, after what it sent", "[sockets]") {
  const bool encrypts = GENERATE(false, true);
  Ends ends = Connect(encrypts);
  std::string word = "last";
  const iovec part = Of(word);
  REQUIRE(*ends[0]->Write({&part, 1}) == 4);
  REQUIRE(*ends[0]->Flush());
  ends[0].reset();

  std::string came(4, ' ');
  const iovec into = Of(came);
  CHECK(*ends[1]->Read({&into, 1}) == 4);
  CHECK(came == word);
  CHECK(ends[1]->Read({&into, 1}).status().code() == absl::StatusCode::kUnavailable);
}

// Relays between two handshakes, and flips a bit of what the dialler sends after them.
TEST_CASE("peer stream: a changed byte breaks an encrypted connection", "[sockets]") {
  auto outer = SocketPair(), inner = SocketPair();
  const auto relay = [&](bool flips) {
    char bytes[4096];
    for (const auto& [from, to] : {std::pair{outer[1].get(), inner[0].get()}, {inner[0].get(), outer[1].get()}}) {
      const ssize_t n = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);
      if (n > 0 && flips) bytes[n - 1] ^= 1;
      if (n > 0) REQUIRE(send(to, bytes, static_cast<size_t>(n), 0) == n);
    }
  };
  const auto dialler = Handshake(std::move(outer[0]), kKey, true, true);
  const auto listener = Handshake(std::move(inner[1]), kKey, false, true);
  StreamWant one = StreamWant::kRead, other = StreamWant::kRead;
  for (int turn = 0; turn < 20 && (one != StreamWant::kNothing || other != StreamWant::kNothing); ++turn) {
    one = dialler->Step().value();
    relay(false);
    other = listener->Step().value();
    relay(false);
  }
  const auto sender = dialler->Finish();
  const auto receiver = listener->Finish();
  std::string word = "word";
  const iovec part = Of(word);
  REQUIRE(*sender->Write({&part, 1}) == 4);
  REQUIRE(*sender->Flush());
  relay(true);

  CHECK_THAT(std::string(receiver->Read({&part, 1}).status().message()), Catch::Contains("not sent by the other end"));
}

}  // namespace
}  // namespace lockstep::worker
