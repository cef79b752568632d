#include "common/net/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// Connections that wait to be accepted; the kernel takes its own limit where that is lower (net.core.somaxconn).
constexpr int kBacklog = 4096;

void SetPort(addrinfo& at, int port) {
  auto& field = at.ai_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(at.ai_addr)->sin6_port
                                         : reinterpret_cast<sockaddr_in*>(at.ai_addr)->sin_port;
  field = htons(static_cast<uint16_t>(port));
}

int PortOf(int socket) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

// Not open where the address is taken, or not of this machine.
Descriptor ListenOn(const addrinfo& at) {
  Descriptor made(socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at.ai_protocol));
  if (!made.is_open()) return made;
  const int on = 1;
  setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // a port that ended connections linger on is free
  setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // what is accepted inherits it
  if (bind(made.get(), at.ai_addr, at.ai_addrlen) != 0 || listen(made.get(), kBacklog) != 0) made.Close();
  return made;
}

}  // namespace

absl::Status CannotListen(const std::string& wanted) {
  return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", wanted,
                                                    ": the port is in use or the address is not of this machine. Give "
                                                    "another one with --listen HOST:PORT (port 0: any free one)"));
}

absl::StatusOr<Listeners> ListenAt(const HostPort& place) {
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* resolved = nullptr;
  if (getaddrinfo(place.host.c_str(), absl::StrCat(place.port).c_str(), &hints, &resolved) != 0) {
    return CannotListen(place.ToString());
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(resolved, freeaddrinfo);
  Listeners listeners = {.sockets = {}, .port = place.port};
  for (addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    SetPort(*at, listeners.port);
    Descriptor socket = ListenOn(*at);
    if (!socket.is_open()) continue;
    listeners.port = PortOf(socket.get());
    listeners.sockets.push_back(std::move(socket));
  }
  if (listeners.sockets.empty()) return CannotListen(place.ToString());
  return listeners;
}

absl::Status CheckListen(const std::string& wanted) {
  LS_ASSIGN_OR_RETURN(const HostPort place, ParseHostPort(wanted));
  return ListenAt(place).status();
}

}  // namespace lockstep
