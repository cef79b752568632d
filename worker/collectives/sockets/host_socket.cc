#include "worker/collectives/sockets/host_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {
namespace {

struct HostAddress {
  sockaddr_un address = {};
  socklen_t length = 0;  // 0: the name is too long
};

HostAddress NameFor(const std::string& address) {
  HostAddress result;
  const std::string name = absl::StrCat("lockstep-peer-", address);
  // The first byte stays zero: that makes a name abstract.
  if (name.size() + 1 > sizeof(result.address.sun_path)) return result;
  result.address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), result.address.sun_path + 1);
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

Descriptor NewSocket() { return Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

}  // namespace

Descriptor ListenOnHost(const std::string& address) {
  const HostAddress name = NameFor(address);
  Descriptor listener = NewSocket();
  const bool listens = name.length > 0 && listener.is_open() &&
                       bind(listener.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) == 0 &&
                       listen(listener.get(), SOMAXCONN) == 0;
  return listens ? std::move(listener) : Descriptor();
}

Descriptor ConnectOnHost(const std::string& address) {
  const HostAddress name = NameFor(address);
  Descriptor socket = NewSocket();
  const bool connects = name.length > 0 && socket.is_open() &&
                        connect(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) == 0 &&
                        IsOfThisUser(socket.get());
  return connects ? std::move(socket) : Descriptor();
}

bool IsHostSocket(int fd) {
  int domain = 0;
  socklen_t length = sizeof(domain);
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX;
}

bool IsOfThisUser(int fd) {
  ucred other = {};
  socklen_t length = sizeof(other);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 && other.uid == geteuid();
}

}  // namespace lockstep::worker
