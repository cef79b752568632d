#include "common/net/listen.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/net/rpc.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::Status CannotListen(const std::string& wanted) {
  return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", wanted,
                                                    ": the port is in use or the address is not of this machine. Give "
                                                    "another one with --listen HOST:PORT (port 0: any free one)"));
}

absl::Status CheckListen(const std::string& wanted) {
  LS_ASSIGN_OR_RETURN(const HostPort place, ParseHostPort(wanted));
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(place.host.c_str(), absl::StrCat(place.port).c_str(), &hints, &found) != 0) {
    return CannotListen(wanted);
  }
  bool listens = false;
  for (const addrinfo* at = found; at != nullptr && !listens; at = at->ai_next) {
    const int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0) continue;
    const int on = 1;  // a port that ended connections linger on is free
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    listens = bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 1) == 0;
    close(fd);
  }
  freeaddrinfo(found);
  return listens ? absl::OkStatus() : CannotListen(wanted);
}

}  // namespace lockstep
