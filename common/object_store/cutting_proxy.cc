#include "common/object_store/cutting_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/status/check.h"

namespace lockstep {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool SendAll(int socket, const char* bytes, uint64_t count) {
  while (count > 0) {
    const ssize_t sent = send(socket, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    count -= static_cast<uint64_t>(sent);
  }
  return true;
}

// Closing then sends a reset, not an end.
void ResetAtClose(int socket) {
  const linger now = {1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

}  // namespace

CuttingProxy::CuttingProxy(int target_port) : target_port_(target_port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  LS_CHECK(bind(listener_, generic, size) == 0 && listen(listener_, 64) == 0, "the loopback has a free port");
  LS_CHECK(getsockname(listener_, generic, &size) == 0, "a socket knows its port");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

CuttingProxy::~CuttingProxy() {
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

void CuttingProxy::Cut(Way way, uint64_t bytes, int times) {
  MutexLock lock(&mutex_);
  way_ = way;
  bytes_ = left_ = bytes;
  times_ = times;
  cuts_ = 0;
}

int CuttingProxy::cuts() const {
  MutexLock lock(&mutex_);
  return cuts_;
}

uint64_t CuttingProxy::Allow(Way way, uint64_t count, bool& cut) {
  MutexLock lock(&mutex_);
  if (times_ == 0 || way != way_) return count;
  const uint64_t allowed = std::min(left_, count);
  left_ -= allowed;
  if (allowed == count) return count;
  cut = true;
  left_ = bytes_;
  --times_;
  ++cuts_;
  return allowed;
}

void CuttingProxy::Accept() {
  while (true) {
    const int client = accept(listener_, nullptr, nullptr);
    MutexLock lock(&mutex_);
    if (client < 0 || ended_) {
      if (client >= 0) close(client);
      return;
    }
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(target_port_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      close(server);
      close(client);
      continue;
    }
    sockets_.push_back(client);
    sockets_.push_back(server);
    threads_.emplace_back([this, client, server] { Carry(client, server); });
  }
}

void CuttingProxy::Carry(int client, int server) {
  char bytes[65536];
  pollfd polled[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
  bool open = true;
  while (open && poll(polled, 2, -1) >= 0) {
    for (int i = 0; open && i < 2; ++i) {
      if (polled[i].revents == 0) continue;
      const ssize_t count = recv(polled[i].fd, bytes, sizeof(bytes), 0);
      bool cut = count <= 0;
      if (count > 0) {
        const uint64_t allowed = Allow(i == 0 ? Way::kRequests : Way::kAnswers, static_cast<uint64_t>(count), cut);
        cut = !SendAll(polled[1 - i].fd, bytes, allowed) || cut;
      }
      if (cut && count > 0) {
        ResetAtClose(client);
        ResetAtClose(server);
      }
      open = !cut;
    }
  }
  MutexLock lock(&mutex_);
  for (const int socket : {client, server}) {
    sockets_.erase(std::find(sockets_.begin(), sockets_.end(), socket));
    close(socket);
  }
}

}  // namespace lockstep
