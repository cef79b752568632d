#include "common/object_store/cutting_proxy.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep {
namespace {

// Closing then sends a reset, not an end.
void ResetAtClose(int socket) {
  const linger now = {1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

}  // namespace

CuttingProxy::CuttingProxy(int target_port)
    : target_port_(target_port), server_([this](int client) { Carry(client); }) {}

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

void CuttingProxy::Carry(int client) {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = LoopbackAddress(target_port_);
  bool open = connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  char bytes[65536];
  pollfd polled[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
  while (open && poll(polled, 2, -1) >= 0) {
    for (int i = 0; open && i < 2; ++i) {
      if (polled[i].revents == 0) continue;
      const ssize_t count = recv(polled[i].fd, bytes, sizeof(bytes), 0);
      bool cut = count <= 0;
      if (count > 0) {
        const uint64_t allowed = Allow(i == 0 ? Way::kRequests : Way::kAnswers, static_cast<uint64_t>(count), cut);
        cut = !SendAll(polled[1 - i].fd, {bytes, allowed}) || cut;
      }
      if (cut && count > 0) {
        ResetAtClose(client);
        ResetAtClose(server);
      }
      open = !cut;
    }
  }
  close(server);
}

}  // namespace lockstep
