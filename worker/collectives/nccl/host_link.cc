#include "worker/collectives/nccl/host_link.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

namespace lockstep::worker::nccl {
namespace {

bool SendWhole(int socket, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool ReceiveAll(int socket, void* data, size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t received = recv(socket, at, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    at += received;
    size -= static_cast<size_t>(received);
  }
  return true;
}

// Sockets that listen for the ranks of an id, by port, until rank 0 connects.
class RankListeners {
 public:
  static RankListeners& Get() {
    static auto* listeners = new RankListeners;
    return *listeners;
  }
  // 0 when the machine gives none.
  uint16_t Open() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(socket, 64) != 0 ||
        getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      close(socket);
      return 0;
    }
    const uint16_t port = ntohs(address.sin_port);
    const std::lock_guard<std::mutex> lock(mutex_);
    open_[port] = socket;
    return port;
  }
  int Take(uint16_t port) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = open_.find(port);
    if (found == open_.end()) return -1;
    const int socket = found->second;
    open_.erase(found);
    return socket;
  }

 private:
  std::mutex mutex_;
  std::map<uint16_t, int> open_;
};

template <typename T>
void AddTo(std::vector<std::byte>& sums, const std::vector<std::byte>& more) {
  T* const to = reinterpret_cast<T*>(sums.data());
  const T* const from = reinterpret_cast<const T*>(more.data());
  for (size_t i = 0; i < sums.size() / sizeof(T); ++i) to[i] = to[i] + from[i];
}

}  // namespace

uint16_t OpenPort() { return RankListeners::Get().Open(); }

Link::~Link() {
  for (const int peer : peers_) close(peer);
}

void Link::Connect() {
  const bool connected = rank_ == 0 ? AcceptAll() : ConnectToFirst();
  const std::lock_guard<std::mutex> lock(mutex_);
  state_ = connected ? kSuccess : kRemoteError;
}

Result Link::state() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_;
}

void Link::Abort() {
  const std::lock_guard<std::mutex> lock(mutex_);
  aborted_ = true;
  for (const int peer : peers_) shutdown(peer, SHUT_RDWR);
  if (listener_ >= 0) shutdown(listener_, SHUT_RDWR);
  changed_.notify_all();
}

void Link::Run(const Operation& operation, const std::byte* send, std::byte* receive) {
  if (rank_ == 0 ? Serve(operation, send, receive) : Ask(operation, send, receive)) return;
  std::unique_lock<std::mutex> lock(mutex_);
  state_ = kRemoteError;
  changed_.wait(lock, [this] { return aborted_; });
}

void Link::Keep(int socket) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const std::lock_guard<std::mutex> lock(mutex_);
  peers_.push_back(socket);
  if (aborted_) shutdown(socket, SHUT_RDWR);
}

bool Link::AcceptAll() {
  const int listener = RankListeners::Get().Take(port_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    listener_ = listener;
    if (aborted_) shutdown(listener_, SHUT_RDWR);
  }
  std::map<int32_t, int> by_rank;
  while (static_cast<int>(by_rank.size()) + 1 < ranks_) {
    const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    int32_t rank = 0;
    if (socket < 0 || !ReceiveAll(socket, &rank, sizeof rank)) break;
    by_rank[rank] = socket;
  }
  for (const auto& [rank, socket] : by_rank) Keep(socket);
  const std::lock_guard<std::mutex> lock(mutex_);
  listener_ = -1;
  close(listener);
  return static_cast<int>(by_rank.size()) + 1 == ranks_;
}

bool Link::ConnectToFirst() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port_);
  const bool connected = connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  Keep(socket);
  const int32_t rank = rank_;
  return connected && SendWhole(socket, &rank, sizeof rank);
}

size_t Link::Sent(const Operation& o, int rank) const {
  if (o.kind == Kind::kBroadcast && rank != o.root) return 0;
  return o.kind == Kind::kReduceScatter ? o.count * static_cast<size_t>(ranks_) : o.count;
}

size_t Link::Received(const Operation& o, int rank) const {
  if (o.kind == Kind::kBroadcast && rank == o.root) return 0;
  return o.kind == Kind::kAllGather ? o.count * static_cast<size_t>(ranks_) : o.count;
}

bool Link::Ask(const Operation& operation, const std::byte* send, std::byte* receive) {
  const int hub = peers_.at(0);
  const size_t bytes = operation.element_bytes();
  return SendWhole(hub, &operation, sizeof operation) && SendWhole(hub, send, Sent(operation, rank_) * bytes) &&
         ReceiveAll(hub, receive, Received(operation, rank_) * bytes);
}

bool Link::Serve(const Operation& operation, const std::byte* send, std::byte* receive) {
  const size_t element = operation.element_bytes();
  const size_t received = Received(operation, 0) * element;
  std::vector<std::byte> result(send, send + Sent(operation, 0) * element);
  std::vector<std::byte> more;
  for (size_t i = 0; i < peers_.size(); ++i) {
    Operation theirs;
    if (!ReceiveAll(peers_[i], &theirs, sizeof theirs) || !(theirs == operation)) return false;
    more.resize(Sent(operation, static_cast<int>(i) + 1) * element);
    if (!ReceiveAll(peers_[i], more.data(), more.size())) return false;
    if (operation.kind == Kind::kAllGather || operation.kind == Kind::kBroadcast) {
      result.insert(result.end(), more.begin(), more.end());
    } else if (operation.type == kInt64) {
      AddTo<int64_t>(result, more);
    } else {
      AddTo<float>(result, more);
    }
  }
  const size_t step = operation.kind == Kind::kReduceScatter ? received : 0;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const size_t bytes = Received(operation, static_cast<int>(i) + 1) * element;
    if (!SendWhole(peers_[i], result.data() + (i + 1) * step, bytes)) return false;
  }
  if (received > 0) std::memcpy(receive, result.data(), received);
  return true;
}

}  // namespace lockstep::worker::nccl
