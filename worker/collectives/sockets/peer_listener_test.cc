#include "worker/collectives/sockets/peer_listener.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/clock/clock.h"
#include "worker/collectives/sockets/host_socket.h"
#include "worker/collectives/sockets/peer_probe.h"
#include "worker/collectives/sockets/peer_secret.h"
#include "worker/collectives/sockets/peer_stream.h"
#include "worker/collectives/sockets/tcp.h"

namespace lockstep::worker {
namespace {

using Want = TlsHandshake::Want;

constexpr absl::Duration kNever = absl::Seconds(30);
constexpr Incarnation kSelf{1, 2};
constexpr Generation kGeneration{.term = 3, .counter = 4};
constexpr PeerPair kPair{.generation = kGeneration, .from = 1, .to = 0, .size = 2, .encrypts = true};
const std::string kSecret(64, 'a');

absl::Time Never() { return SteadyNow() + kNever; }

std::unique_ptr<PeerListener> Listener() { return PeerListener::Start("127.0.0.1", kSelf).value(); }

std::shared_ptr<ExpectedPeers> ExpectOne(PeerListener& listener) {
  return listener.Expect(kGeneration, 0, 2, kSecret, PeerSecurity::kEncrypted);
}

Descriptor ConnectAndSay(const PeerListener& listener, const std::string& bytes) {
  Descriptor socket = ConnectTo(ResolveAddress(listener.address()).value(), -1, Never(), "test").value();
  REQUIRE(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  return socket;
}

// Without having been told a byte.
void CheckShownOut(const Descriptor& socket) {
  REQUIRE(AwaitReady(socket.get(), POLLIN, -1, Never(), "test").ok());
  char byte = 0;
  CHECK(recv(socket.get(), &byte, 1, 0) <= 0);
}

// A rank that has the secret, to the end of its handshake.
absl::StatusOr<std::unique_ptr<PeerStream>> Join(const PeerListener& listener, const PeerPair& pair,
                                                 const std::string& secret) {
  auto handshake = MakeTlsHandshake(ConnectAndSay(listener, RankPrelude(secret, pair)), PreSharedKey(secret, pair),
                                    /*dials=*/true, pair.encrypts)
                       .value();
  for (;;) {
    const auto want = handshake->Step();
    if (!want.ok()) return want.status();
    if (*want == Want::kNothing) return handshake->Finish();
    if (!AwaitReady(handshake->fd(), POLLIN, -1, Never(), "test").ok()) return absl::DeadlineExceededError("");
  }
}

void CheckRankGetsIn(const PeerListener& listener, ExpectedPeers& expected) {
  const auto joined = Join(listener, kPair, kSecret);
  INFO(joined.status().ToString());
  CHECK(joined.ok());
  CHECK(expected.Await(1, Never()).ok());
}

TEST_CASE("peer listener: what is no prelude, or shows another secret, is shown out at once", "[sockets]") {
  const auto listener = Listener();
  const auto expected = ExpectOne(*listener);
  PeerPair other = kPair;
  other.generation.counter = 5;
  PeerPair plain = kPair;
  plain.encrypts = false;
  PeerPair no_rank = kPair;
  no_rank.from = 2;
  PeerPair itself = kPair;
  itself.from = 0;

  CheckShownOut(ConnectAndSay(*listener, std::string(kPreludeBytes, 'x')));
  CheckShownOut(ConnectAndSay(*listener, RankPrelude(std::string(64, 'b'), kPair)));
  for (const PeerPair& pair : {other, plain, no_rank, itself}) {
    CheckShownOut(ConnectAndSay(*listener, RankPrelude(kSecret, pair)));
  }

  CheckRankGetsIn(*listener, *expected);
}

TEST_CASE("peer listener: a recorded prelude opens nothing, and takes nobody's place", "[sockets]") {
  const auto listener = Listener();
  const auto expected = ExpectOne(*listener);
  const std::string recorded = RankPrelude(kSecret, kPair);

  const Descriptor silent = ConnectAndSay(*listener, recorded);
  const Descriptor garbage = ConnectAndSay(*listener, recorded + std::string(200, 'g'));
  CheckRankGetsIn(*listener, *expected);
  const Descriptor late = ConnectAndSay(*listener, recorded);

  CheckShownOut(silent);  // after two seconds
  CheckShownOut(late);
  REQUIRE(AwaitReady(garbage.get(), POLLIN, -1, Never(), "test").ok());
}

TEST_CASE("peer listener: strangers who say nothing keep nobody out", "[sockets]") {
  const auto listener = Listener();
  const auto expected = ExpectOne(*listener);
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 300; ++i) strangers.push_back(ConnectAndSay(*listener, i % 2 == 0 ? "" : "LSpeer01"));

  CheckRankGetsIn(*listener, *expected);
  CHECK(ProbePeer(listener->address(), kSelf, kNever).ok());
  for (const Descriptor& stranger : strangers) CheckShownOut(stranger);
}

TEST_CASE("peer listener: a rank says little by little what it is", "[sockets]") {
  const auto listener = Listener();
  const auto expected = ExpectOne(*listener);
  const std::string prelude = RankPrelude(kSecret, kPair);
  Descriptor socket = ConnectAndSay(*listener, prelude.substr(0, 1));
  CHECK(ProbePeer(listener->address(), kSelf, kNever).ok());  // by now the first byte was read
  REQUIRE(send(socket.get(), prelude.data() + 1, prelude.size() - 1, MSG_NOSIGNAL) == kPreludeBytes - 1);

  auto handshake = MakeTlsHandshake(std::move(socket), PreSharedKey(kSecret, kPair), true, true).value();
  while (handshake->Step().value() != Want::kNothing) {
    REQUIRE(AwaitReady(handshake->fd(), POLLIN, -1, Never(), "test").ok());
  }
  CHECK(expected->Await(1, Never()).ok());
}

TEST_CASE("peer listener: ranks of two generations find theirs", "[sockets]") {
  const auto listener = Listener();
  const auto expected = ExpectOne(*listener);
  const std::string other_secret(64, 'c');
  const auto other = listener->Expect({3, 5}, 0, 2, other_secret, PeerSecurity::kAuthenticated);
  PeerPair pair = kPair;
  pair.generation.counter = 5;
  pair.encrypts = false;

  CHECK(Join(*listener, pair, other_secret).ok());
  CHECK(other->Await(1, Never()).ok());
  CheckRankGetsIn(*listener, *expected);
}

TEST_CASE("peer listener: of two ranks the one with the stricter setting is followed", "[sockets]") {
  const auto listener = Listener();
  const auto relaxed = listener->Expect(kGeneration, 0, 2, kSecret, PeerSecurity::kAuthenticated);

  CHECK(Join(*listener, kPair, kSecret).ok());  // encrypted
  CHECK(relaxed->Await(1, Never()).ok());
}

TEST_CASE("peer secret: a card is read as it was written, and nothing else is one", "[sockets]") {
  const PeerCard card{kSecret, PeerSecurity::kAuthenticated, "10.0.0.7:4711"};
  const auto read = PeerCard::Parse(card.Text());
  REQUIRE(read.ok());
  CHECK(read->secret == card.secret);
  CHECK(read->security == card.security);
  CHECK(read->address == card.address);
  for (const std::string& text : {std::string(), std::string("an address"), kSecret, kSecret + " x host:1",
                                  kSecret + " a ", kSecret + " ahost:1"}) {
    CHECK_FALSE(PeerCard::Parse(text).ok());
  }
}

TEST_CASE("peer secret: a key belongs to one pair, one generation and one way", "[sockets]") {
  std::vector<PeerPair> pairs(6, kPair);
  pairs[1].from = 2;
  pairs[2].to = 3;
  pairs[3].generation.term = 9;
  pairs[4].size = 3;
  pairs[5].encrypts = false;
  for (size_t i = 0; i < pairs.size(); ++i) {
    CHECK(PreSharedKey(kSecret, pairs[i]).size() == 32);
    for (size_t j = 0; j < i; ++j) {
      CHECK(PreSharedKey(kSecret, pairs[i]) != PreSharedKey(kSecret, pairs[j]));
      CHECK(RankPrelude(kSecret, pairs[i]) != RankPrelude(kSecret, pairs[j]));
    }
  }
}

// Whether the listener answers a probe over its Unix socket; false: it closes the connection.
bool AnswersOnHost(const std::string& address) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string path = "lockstep-peer-" + address;
  std::copy(path.begin(), path.end(), name.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0) return false;
  const std::string prelude = ProbePrelude();
  if (send(socket.get(), prelude.data(), prelude.size(), MSG_NOSIGNAL) < 0) return false;
  char byte = 0;
  return recv(socket.get(), &byte, 1, 0) == 1;
}

TEST_CASE("listener: workers of the same host and user reach it by a Unix socket, and nobody else", "[sockets]") {
  const auto listener = Listener();
  CHECK(AnswersOnHost(listener->address()));
  const Descriptor connected = ConnectOnHost(listener->address());
  CHECK((connected.is_open() && IsHostSocket(connected.get()) && IsOfThisUser(connected.get())));
  CHECK_FALSE(ConnectOnHost("127.0.0.1:1").is_open());
  CHECK_FALSE(ConnectOnHost(std::string(200, 'x')).is_open());
  if (geteuid() != 0) return;  // nobody else can be played
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (setuid(65534) != 0) _exit(2);
    _exit(AnswersOnHost(listener->address()) || ConnectOnHost(listener->address()).is_open() ? 1 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

}  // namespace
}  // namespace lockstep::worker
