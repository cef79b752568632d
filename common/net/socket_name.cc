#include "common/net/socket_name.h"

#include <netdb.h>

#include "absl/strings/str_cat.h"

namespace lockstep {

std::string SocketName(const sockaddr_storage& address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), sizeof address, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  return absl::StrCat(address.ss_family == AF_INET6 ? absl::StrCat("[", host, "]") : host, ":", port);
}

std::string PeerOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  return getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? SocketName(address) : "?";
}

}  // namespace lockstep
