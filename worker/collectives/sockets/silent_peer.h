// A fake peer that never answers: connections stay in its listen backlog.
//
// Threading: owned by the test.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SILENT_PEER_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SILENT_PEER_H_

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "common/status/check.h"

namespace lockstep::worker {

class SilentPeer {
 public:
  SilentPeer() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    socklen_t length = sizeof(at);
    LS_CHECK(bind(socket_, address, length) == 0 && listen(socket_, 8) == 0, "a port is free");
    LS_CHECK(getsockname(socket_, address, &length) == 0, "the socket has a name");
    address_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  ~SilentPeer() { close(socket_); }
  SilentPeer(const SilentPeer&) = delete;
  SilentPeer& operator=(const SilentPeer&) = delete;

  const std::string& address() const { return address_; }

 private:
  const int socket_;
  std::string address_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SILENT_PEER_H_
