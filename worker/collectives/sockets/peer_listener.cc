#include "worker/collectives/sockets/peer_listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/liveness/activity.h"
#include "common/status/status_macros.h"
#include "worker/collectives/completion.h"
#include "worker/collectives/sockets/host_socket.h"
#include "worker/collectives/sockets/probe_answer.h"

namespace lockstep::worker {
namespace {

constexpr size_t kMostGuests = 256;
constexpr absl::Duration kGuestLimit = absl::Seconds(2);
// How long nobody is accepted when descriptors have run out.
constexpr absl::Duration kBreather = absl::Milliseconds(50);

}  // namespace

ExpectedPeers::ExpectedPeers(Generation generation, int rank, int size, std::string secret, PeerSecurity security)
    : generation_(generation),
      rank_(rank),
      size_(size),
      secret_(std::move(secret)),
      security_(security),
      streams_(static_cast<size_t>(size)) {}

absl::StatusOr<std::unique_ptr<PeerStream>> ExpectedPeers::Await(int from, absl::Time until) {
  MutexLock lock(&mutex_);
  std::unique_ptr<PeerStream>& stream = streams_[static_cast<size_t>(from)];
  while (stream == nullptr && aborted_.ok()) {
    const absl::Duration left = until - SteadyNow();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("rank ", from, " did not connect in time"));
    }
    changed_.WaitWithTimeout(&mutex_, left);
  }
  LS_RETURN_IF_ERROR(aborted_);
  return std::move(stream);
}

void ExpectedPeers::Abort(const absl::Status& cause) {
  MutexLock lock(&mutex_);
  if (aborted_.ok()) aborted_ = AsAborted(cause);
  changed_.SignalAll();
}

std::string ExpectedPeers::KeyOf(absl::string_view bytes, bool loopback) {
  const std::optional<Prelude> prelude = lockstep::worker::ReadPrelude(bytes);
  const auto size = static_cast<uint32_t>(size_);
  if (!prelude.has_value() || prelude->kind != PreludeKind::kRank || prelude->from >= size ||
      (Encrypts(security_, loopback) && !prelude->encrypts)) {
    return "";
  }
  const PeerPair pair{.generation = generation_,
                      .from = static_cast<int>(prelude->from),
                      .to = rank_,
                      .size = size_,
                      .encrypts = prelude->encrypts};
  const std::string expected = RankPrelude(secret_, pair);
  // Takes as long wherever they differ.
  int difference = 0;
  for (size_t i = 0; i < kPreludeBytes; ++i) difference |= expected[i] ^ bytes[i];
  return difference == 0 && pair.from > rank_ ? PreSharedKey(secret_, pair) : "";
}

void ExpectedPeers::Arrived(int from, std::unique_ptr<PeerStream> stream) {
  MutexLock lock(&mutex_);
  if (streams_[static_cast<size_t>(from)] == nullptr) streams_[static_cast<size_t>(from)] = std::move(stream);
  changed_.SignalAll();
}

absl::StatusOr<std::unique_ptr<PeerListener>> PeerListener::Start(const std::string& host, Incarnation incarnation) {
  LS_ASSIGN_OR_RETURN(Listening listening, ListenOn(host));
  int wake[2];
  if (pipe2(wake, O_CLOEXEC) != 0) return SystemError("cannot make a pipe");
  std::string address = absl::StrCat(host, ":", listening.port);
  return std::unique_ptr<PeerListener>(new PeerListener(std::move(listening), Descriptor(wake[0]), Descriptor(wake[1]),
                                                        std::move(address), incarnation));
}

PeerListener::PeerListener(Listening listening, Descriptor wake_read, Descriptor wake_write, std::string address,
                           Incarnation incarnation)
    : listener_(std::move(listening.socket)),
      wake_read_(std::move(wake_read)),
      wake_write_(std::move(wake_write)),
      address_(std::move(address)),
      host_listener_(ListenOnHost(address_)),
      incarnation_(incarnation),
      thread_([this] { Serve(); }) {}

PeerListener::~PeerListener() {
  wake_write_.Close();  // the other end becomes readable
  thread_.join();
}

std::shared_ptr<ExpectedPeers> PeerListener::Expect(Generation generation, int rank, int size, std::string secret,
                                                    PeerSecurity security) {
  auto peers = std::make_shared<ExpectedPeers>(generation, rank, size, std::move(secret), security);
  MutexLock lock(&mutex_);
  std::erase_if(expected_, [](const auto& group) { return group.expired(); });
  expected_.push_back(peers);
  return peers;
}

void PeerListener::Serve() {
  NameThread("peer listener");
  std::vector<pollfd> entries;
  for (;;) {
    const absl::Time now = SteadyNow();
    std::erase_if(guests_, [&](const Guest& guest) { return now >= guest.until; });
    absl::Duration wait = guests_.empty() ? absl::InfiniteDuration() : guests_.front().until - now;
    if (std::exchange(out_of_descriptors_, false)) wait = std::min(wait, kBreather);
    const bool accepts = wait != kBreather;
    entries = {{.fd = wake_read_.get(), .events = POLLIN, .revents = 0},
               {.fd = accepts ? listener_.get() : -1, .events = POLLIN, .revents = 0},
               {.fd = accepts ? host_listener_.get() : -1, .events = POLLIN, .revents = 0}};
    for (const Guest& guest : guests_) entries.push_back({.fd = guest.fd(), .events = guest.awaits, .revents = 0});
    const int timeout = wait == absl::InfiniteDuration() ? -1 : static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1;
    if (poll(entries.data(), entries.size(), timeout) < 0) continue;
    if (entries[0].revents != 0) return;
    size_t entry = 3;
    for (auto guest = guests_.begin(); guest != guests_.end();) {
      const bool stays = entries[entry++].revents == 0 || Advance(*guest);
      guest = stays ? std::next(guest) : guests_.erase(guest);
    }
    if (entries[1].revents != 0) Accept(listener_);
    if (entries[2].revents != 0) Accept(host_listener_);
  }
}

void PeerListener::Accept(const Descriptor& listener) {
  for (;;) {
    Guest guest;
    sockaddr_storage other = {};
    socklen_t length = sizeof(other);
    guest.socket =
        Descriptor(accept4(listener.get(), reinterpret_cast<sockaddr*>(&other), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!guest.socket.is_open()) {
      out_of_descriptors_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      return;
    }
    if (other.ss_family == AF_INET) {
      std::memcpy(&guest.other, &other, sizeof(guest.other));
      SetForPeers(guest.socket.get());
    } else if (!IsOfThisUser(guest.socket.get())) {
      continue;
    }
    guest.awaits = POLLIN;
    guest.until = SteadyNow() + kGuestLimit;
    // Who belongs here has sent its prelude with the connection, as a rule.
    if (!Advance(guest)) continue;
    if (guests_.size() == kMostGuests) {
      const auto idle = std::find_if(guests_.begin(), guests_.end(), [](const Guest& g) { return g.group == nullptr; });
      if (idle == guests_.end()) continue;
      guests_.erase(idle);
    }
    guests_.push_back(std::move(guest));
  }
}

bool PeerListener::ReadPrelude(Guest& guest) {
  char bytes[kPreludeBytes];
  const ssize_t n = recv(guest.fd(), bytes, kPreludeBytes - guest.prelude.size(), 0);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  guest.prelude.append(bytes, static_cast<size_t>(n));
  if (guest.prelude.size() < kPreludeBytes) return true;
  const std::optional<Prelude> prelude = lockstep::worker::ReadPrelude(guest.prelude);
  if (!prelude.has_value()) return false;
  if (prelude->kind == PreludeKind::kProbe) return Answer(guest);
  std::vector<std::weak_ptr<ExpectedPeers>> expected;
  {
    MutexLock lock(&mutex_);
    expected = expected_;
  }
  for (const auto& group : expected) {
    guest.group = group.lock();
    const std::string key = guest.group == nullptr ? "" : guest.group->KeyOf(guest.prelude, guest.loopback());
    if (key.empty()) continue;
    guest.from = static_cast<int>(prelude->from);
    auto handshake = MakeTlsHandshake(std::move(guest.socket), key, /*dials=*/false, prelude->encrypts);
    if (!handshake.ok()) return false;
    guest.handshake = *std::move(handshake);
    return true;
  }
  return false;
}

bool PeerListener::Answer(const Guest& guest) {
  // Fits into any empty send buffer, so nobody can hold this thread up.
  const std::string answer = ProbeAnswer(incarnation_);
  (void)!send(guest.fd(), answer.data(), answer.size(), MSG_NOSIGNAL);
  return false;
}

bool PeerListener::Advance(Guest& guest) {
  if (guest.handshake == nullptr && !ReadPrelude(guest)) return false;
  if (guest.handshake == nullptr) return true;
  const absl::StatusOr<TlsHandshake::Want> want = guest.handshake->Step();
  if (!want.ok()) return false;
  if (*want == TlsHandshake::Want::kNothing) {
    guest.group->Arrived(guest.from, guest.handshake->Finish());
    return false;
  }
  guest.awaits = *want == TlsHandshake::Want::kWrite ? POLLOUT : POLLIN;
  return true;
}

}  // namespace lockstep::worker
