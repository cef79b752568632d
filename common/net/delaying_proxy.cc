#include "common/net/delaying_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/status/check.h"

namespace lockstep {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

struct Piece {
  absl::Time due;
  std::string bytes;  // empty: the end
};

bool SendAll(int to, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = send(to, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

DelayingProxy::DelayingProxy(int target_port, absl::Duration one_way, Change change)
    : target_port_(target_port), one_way_(one_way), change_(std::move(change)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  LS_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0, "cannot bind");
  LS_CHECK(listen(listener_, 64) == 0, "cannot listen");
  LS_CHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0, "has no address");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

DelayingProxy::~DelayingProxy() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    ended_ = true;
    shutdown(listener_, SHUT_RDWR);
    for (const int fd : sockets_) shutdown(fd, SHUT_RDWR);
  }
  acceptor_.join();
  {
    MutexLock lock(&mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(&mutex_);
  for (const int fd : sockets_) close(fd);
  close(listener_);
}

std::string DelayingProxy::address() const { return absl::StrCat("127.0.0.1:", port_); }

void DelayingProxy::Accept() {
  for (;;) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in target = Loopback(target_port_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&target), sizeof(target)) != 0) {
      close(server);
      close(client);
      continue;
    }
    MutexLock lock(&mutex_);
    sockets_.insert(sockets_.end(), {client, server});
    if (ended_) {
      shutdown(client, SHUT_RDWR);
      shutdown(server, SHUT_RDWR);
    }
    threads_.emplace_back([this, client, server] { Carry(client, server, /*to_target=*/true); });
    threads_.emplace_back([this, client, server] { Carry(server, client, /*to_target=*/false); });
  }
}

void DelayingProxy::Carry(int from, int to, bool to_target) {
  std::deque<Piece> pieces;
  uint64_t offset = 0;
  bool open = true;
  while (open || !pieces.empty()) {
    int wait_ms = -1;
    if (!pieces.empty()) {
      const absl::Duration left = pieces.front().due - SteadyNow();
      wait_ms = static_cast<int>(absl::ToInt64Milliseconds(std::max(absl::ZeroDuration(), left)) + 1);
      if (left <= absl::ZeroDuration()) wait_ms = 0;
    }
    pollfd entry = {.fd = open ? from : -1, .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, wait_ms) > 0) {
      std::string bytes(64 * 1024, '\0');
      const ssize_t n = recv(from, bytes.data(), bytes.size(), 0);
      open = n > 0;
      bytes.resize(open ? static_cast<size_t>(n) : 0);
      if (open && change_ != nullptr) change_(to_target, offset, bytes);
      offset += bytes.size();
      pieces.push_back({SteadyNow() + one_way_, std::move(bytes)});
    }
    while (!pieces.empty() && pieces.front().due <= SteadyNow()) {
      if (pieces.front().bytes.empty()) {
        shutdown(to, SHUT_WR);
      } else if (!SendAll(to, pieces.front().bytes)) {
        shutdown(from, SHUT_RDWR);
        return;
      }
      pieces.pop_front();
    }
  }
}

}  // namespace lockstep
