#include "worker/collectives/peer_probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

// "LSprobe1", then the incarnation's two halves, most significant byte first.
constexpr char kMagic[] = "LSprobe1";
constexpr size_t kAnswerBytes = 24;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string AnswerOf(Incarnation incarnation) {
  std::string answer(kMagic, 8);
  for (const uint64_t half : {incarnation.high, incarnation.low}) {
    for (int shift = 56; shift >= 0; shift -= 8) answer.push_back(static_cast<char>(half >> shift & 0xff));
  }
  return answer;
}

Incarnation IncarnationIn(const std::string& answer) {
  const auto half = [&](size_t at) {
    uint64_t value = 0;
    for (size_t i = 0; i < 8; ++i) value = value << 8 | static_cast<uint8_t>(answer[at + i]);
    return value;
  };
  return {.high = half(8), .low = half(16)};
}

absl::StatusOr<sockaddr_in> Resolve(const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) return absl::UnavailableError(absl::StrCat("cannot resolve '", host, "': ", gai_strerror(error)));
  sockaddr_in address;
  std::memcpy(&address, found->ai_addr, sizeof(address));
  freeaddrinfo(found);
  address.sin_port = htons(port);
  return address;
}

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// OK when `events` came before `until` and before anything happened to `cancel`.
absl::Status Await(int fd, short events, int cancel, absl::Time until, const std::string& what) {
  for (;;) {
    const int64_t left = std::max<int64_t>(0, absl::ToInt64Milliseconds(until - SteadyNow()));
    pollfd entries[2] = {{.fd = fd, .events = events, .revents = 0}, {.fd = cancel, .events = POLLIN, .revents = 0}};
    const int ready = poll(entries, 2, static_cast<int>(std::min<int64_t>(left, 1 << 30)));
    if (ready < 0 && errno != EINTR) return SystemError(what);
    if (ready == 0) return absl::DeadlineExceededError(absl::StrCat(what, ": no answer in time"));
    if (ready > 0 && entries[1].revents != 0) return absl::CancelledError(absl::StrCat(what, ": ended"));
    if (ready > 0) return absl::OkStatus();
  }
}

// A socket that listens on `host`, at a free port, which `address` names then.
absl::StatusOr<int> Listen(const std::string& host, sockaddr_in& address) {
  LS_ASSIGN_OR_RETURN(address, Resolve(host, 0));
  Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  socklen_t length = sizeof(address);
  if (listener.get() < 0 || bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener.get(), 64) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return SystemError(absl::StrCat("cannot listen for peers on '", host,
                                    "' (is it still an address of this machine? --peer-host gives another)"));
  }
  return listener.release();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PeerProbeServer>> PeerProbeServer::Start(const std::string& host,
                                                                        Incarnation incarnation) {
  sockaddr_in address;
  LS_ASSIGN_OR_RETURN(const int listening, Listen(host, address));
  Descriptor listener(listening);
  int wake[2];
  if (pipe2(wake, O_CLOEXEC) != 0) return SystemError("cannot make a pipe");
  return std::unique_ptr<PeerProbeServer>(new PeerProbeServer(
      listener.release(), wake[0], wake[1], absl::StrCat(host, ":", ntohs(address.sin_port)), incarnation));
}

PeerProbeServer::PeerProbeServer(int listener, int wake_read, int wake_write, std::string address,
                                 Incarnation incarnation)
    : listener_(listener),
      wake_read_(wake_read),
      wake_write_(wake_write),
      address_(std::move(address)),
      incarnation_(incarnation),
      thread_([this] { Serve(); }) {}

PeerProbeServer::~PeerProbeServer() {
  close(wake_write_);  // the other end becomes readable
  thread_.join();
  close(wake_read_);
  close(listener_);
}

void PeerProbeServer::Serve() {
  const std::string answer = AnswerOf(incarnation_);
  for (;;) {
    pollfd entries[2] = {{.fd = listener_, .events = POLLIN, .revents = 0},
                         {.fd = wake_read_, .events = POLLIN, .revents = 0}};
    if (poll(entries, 2, -1) < 0 && errno != EINTR) return;
    if (entries[1].revents != 0) return;
    if ((entries[0].revents & POLLIN) == 0) continue;
    // The answer fits into any empty send buffer, so nobody can hold this thread up.
    const Descriptor peer(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (peer.get() >= 0) (void)!send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
  }
}

absl::Status ProbePeer(const std::string& address, Incarnation expected, absl::Duration limit, int cancel) {
  const absl::Time until = SteadyNow() + std::min(limit, absl::Hours(1));
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port <= 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not host:port"));
  }
  LS_ASSIGN_OR_RETURN(const sockaddr_in target, Resolve(address.substr(0, colon), static_cast<uint16_t>(port)));
  const std::string what = absl::StrCat("probing ", address);
  const Descriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return SystemError(what);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&target), sizeof(target)) != 0) {
    if (errno != EINPROGRESS) return SystemError(what);
    LS_RETURN_IF_ERROR(Await(fd.get(), POLLOUT, cancel, until, what));
    socklen_t length = sizeof(errno);
    if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &errno, &length) != 0 || errno != 0) return SystemError(what);
  }
  std::string answer;
  while (answer.size() < kAnswerBytes) {
    LS_RETURN_IF_ERROR(Await(fd.get(), POLLIN, cancel, until, what));
    char bytes[kAnswerBytes];
    const ssize_t n = recv(fd.get(), bytes, kAnswerBytes - answer.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) return SystemError(what);
    if (n == 0) return absl::FailedPreconditionError(absl::StrCat(what, ": no worker answers there"));
    answer.append(bytes, static_cast<size_t>(n));
  }
  if (answer.compare(0, 8, kMagic, 8) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(what, ": no worker answers there"));
  }
  if (const Incarnation found = IncarnationIn(answer); found != expected) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": incarnation ", found.ToString(), " answers, expected ", expected.ToString()));
  }
  return absl::OkStatus();
}

absl::Status CanListen(const std::string& host) {
  sockaddr_in address;
  const absl::StatusOr<int> listening = Listen(host, address);
  if (listening.ok()) close(*listening);
  return listening.status();
}

}  // namespace lockstep::worker
