#include "worker/collectives/sockets/tcp.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

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

}  // namespace

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::StatusOr<sockaddr_in> ResolveAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port <= 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is not host:port"));
  }
  return Resolve(address.substr(0, colon), static_cast<uint16_t>(port));
}

bool IsLoopback(const sockaddr_in& address) { return ntohl(address.sin_addr.s_addr) >> 24 == 127; }

absl::StatusOr<Listening> ListenOn(const std::string& host) {
  LS_ASSIGN_OR_RETURN(sockaddr_in address, Resolve(host, 0));
  Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  socklen_t length = sizeof(address);
  if (!listener.is_open() || bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return SystemError(absl::StrCat("cannot listen for peers on '", host,
                                    "' (is it still an address of this machine? --peer-host gives another)"));
  }
  return Listening{std::move(listener), ntohs(address.sin_port)};
}

absl::Status AwaitReady(int fd, short events, int cancel, absl::Time until, const std::string& what) {
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

absl::StatusOr<Descriptor> ConnectTo(const sockaddr_in& target, int cancel, absl::Time until, const std::string& what) {
  Descriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return SystemError(what);
  SetForPeers(fd.get());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&target), sizeof(target)) != 0) {
    if (errno != EINPROGRESS) return SystemError(what);
    LS_RETURN_IF_ERROR(AwaitReady(fd.get(), POLLOUT, cancel, until, what));
    socklen_t length = sizeof(errno);
    if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &errno, &length) != 0 || errno != 0) return SystemError(what);
  }
  return fd;
}

void SetForPeers(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace lockstep::worker
