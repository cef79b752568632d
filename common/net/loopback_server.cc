#include "common/net/loopback_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/status/check.h"

namespace lockstep {

sockaddr_in LoopbackAddress(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool SendAll(int socket, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

LoopbackServer::LoopbackServer(std::function<void(int)> serve) : serve_(std::move(serve)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = LoopbackAddress(0);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  LS_CHECK(bind(listener_, generic, size) == 0 && listen(listener_, 64) == 0, "the loopback has a free port");
  LS_CHECK(getsockname(listener_, generic, &size) == 0, "a socket knows its port");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

LoopbackServer::~LoopbackServer() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    ended_ = true;
    shutdown(listener_, SHUT_RDWR);
    for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
  }
  acceptor_.join();
  {
    MutexLock lock(&mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  close(listener_);
}

int LoopbackServer::connections() const {
  MutexLock lock(&mutex_);
  return connections_;
}

void LoopbackServer::Accept() {
  while (true) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    MutexLock lock(&mutex_);
    if (socket < 0 || ended_) {
      if (socket >= 0) close(socket);
      return;
    }
    ++connections_;
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { Serve(socket); });
  }
}

void LoopbackServer::Serve(int socket) {
  serve_(socket);
  MutexLock lock(&mutex_);
  sockets_.erase(std::find(sockets_.begin(), sockets_.end(), socket));
  close(socket);
}

}  // namespace lockstep
