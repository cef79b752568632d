// NCCL's stand-in in host execution: the calls of nccl_api.h between processes of one machine, over TCP. Rank 0
// collects what the others send, reduces it in the order of ranks and sends the results back. What it keeps of NCCL's
// behaviour: nothing blocks a caller, work runs in streams, a lost peer is an asynchronous error while the stream
// hangs, and an abort lets the stream go on with whatever is in the buffers.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "worker/collectives/nccl/load_nccl.h"
#include "worker/device/cuda/runtime/runtime_on_host.h"

namespace lockstep::worker::nccl {
namespace {

enum class Kind : uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast };

// What one rank asks for; all ranks must ask for the same.
struct Operation {
  Kind kind = Kind::kAllReduce;
  DataType type = kInt64;
  uint64_t count = 0;  // as the call says: of all, of a part received, of a part sent
  int root = 0;        // of a broadcast

  friend bool operator==(const Operation&, const Operation&) = default;
  size_t element_bytes() const {
    switch (type) {
      case kUint8:
        return 1;
      case kInt64:
        return sizeof(int64_t);
      case kFloat32:
        break;
    }
    return sizeof(float);
  }
};

bool SendAll(int socket, const void* data, size_t size) {
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
class Listeners {
 public:
  static Listeners& Get() {
    static auto* listeners = new Listeners;
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

// One rank's end, shared with what is queued in streams.
class Link {
 public:
  Link(int ranks, int rank, uint16_t port) : ranks_(ranks), rank_(rank), port_(port) {}
  ~Link() {
    for (const int peer : peers_) close(peer);
  }

  void Connect() {
    const bool connected = rank_ == 0 ? AcceptAll() : ConnectToFirst();
    const std::lock_guard<std::mutex> lock(mutex_);
    state_ = connected ? kSuccess : kRemoteError;
  }

  Result state() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return state_;
  }

  void Abort() {
    const std::lock_guard<std::mutex> lock(mutex_);
    aborted_ = true;
    for (const int peer : peers_) shutdown(peer, SHUT_RDWR);
    if (listener_ >= 0) shutdown(listener_, SHUT_RDWR);
    changed_.notify_all();
  }

  // In a stream. `send` and `receive` as in the call.
  void Run(const Operation& operation, const std::byte* send, std::byte* receive) {
    if (rank_ == 0 ? Serve(operation, send, receive) : Ask(operation, send, receive)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    state_ = kRemoteError;
    changed_.wait(lock, [this] { return aborted_; });
  }

 private:
  void Keep(int socket) {
    const int yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const std::lock_guard<std::mutex> lock(mutex_);
    peers_.push_back(socket);
    if (aborted_) shutdown(socket, SHUT_RDWR);
  }

  bool AcceptAll() {
    const int listener = Listeners::Get().Take(port_);
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

  bool ConnectToFirst() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    const bool connected = connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    Keep(socket);
    const int32_t rank = rank_;
    return connected && SendAll(socket, &rank, sizeof rank);
  }

  // What a rank contributes and gets, in elements.
  size_t Sent(const Operation& o, int rank) const {
    if (o.kind == Kind::kBroadcast && rank != o.root) return 0;
    return o.kind == Kind::kReduceScatter ? o.count * static_cast<size_t>(ranks_) : o.count;
  }
  size_t Received(const Operation& o, int rank) const {
    if (o.kind == Kind::kBroadcast && rank == o.root) return 0;
    return o.kind == Kind::kAllGather ? o.count * static_cast<size_t>(ranks_) : o.count;
  }

  bool Ask(const Operation& operation, const std::byte* send, std::byte* receive) {
    const int hub = peers_.at(0);
    const size_t bytes = operation.element_bytes();
    return SendAll(hub, &operation, sizeof operation) && SendAll(hub, send, Sent(operation, rank_) * bytes) &&
           ReceiveAll(hub, receive, Received(operation, rank_) * bytes);
  }

  template <typename T>
  static void AddTo(std::vector<std::byte>& sums, const std::vector<std::byte>& more) {
    T* const to = reinterpret_cast<T*>(sums.data());
    const T* const from = reinterpret_cast<const T*>(more.data());
    for (size_t i = 0; i < sums.size() / sizeof(T); ++i) to[i] = to[i] + from[i];
  }

  bool Serve(const Operation& operation, const std::byte* send, std::byte* receive) {
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
      if (!SendAll(peers_[i], result.data() + (i + 1) * step, bytes)) return false;
    }
    if (received > 0) std::memcpy(receive, result.data(), received);
    return true;
  }

  const int ranks_;
  const int rank_;
  const uint16_t port_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Result state_ = kInProgress;
  bool aborted_ = false;
  int listener_ = -1;
  std::vector<int> peers_;  // rank 0's: by rank; of others: rank 0. Unchanged once connected.
};

struct HostComm {
  std::shared_ptr<Link> link;
  std::thread connecting;
};

HostComm* Of(Comm comm) { return reinterpret_cast<HostComm*>(comm); }

Result GetVersion(int* version) {
  *version = 22809;
  return kSuccess;
}

Result GetUniqueId(UniqueId* id) {
  const uint16_t port = Listeners::Get().Open();
  std::memcpy(id->bytes, &port, sizeof port);
  return port == 0 ? kSystemError : kSuccess;
}

Result CommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
  if (config->blocking != 0 || rank < 0 || rank >= ranks) return kInvalidArgument;
  uint16_t port = 0;
  std::memcpy(&port, id.bytes, sizeof port);
  auto* const made = new HostComm;
  made->link = std::make_shared<Link>(ranks, rank, port);
  made->connecting = std::thread([link = made->link] { link->Connect(); });
  *comm = reinterpret_cast<Comm>(made);
  return kInProgress;
}

Result CommGetAsyncError(Comm comm, Result* error) {
  *error = Of(comm)->link->state();
  return kSuccess;
}

Result CommAbort(Comm comm) {
  HostComm* const host = Of(comm);
  host->link->Abort();
  host->connecting.join();
  delete host;
  return kSuccess;
}

const char* GetErrorString(Result result) { return result == kRemoteError ? "a peer was lost" : "it failed"; }
const char* GetLastError(Comm) { return ""; }
Result GroupStart() { return kSuccess; }
Result GroupEnd() { return kSuccess; }

Result Queue(const Operation& operation, const void* send, void* receive, Comm comm,
             device::cuda::StreamHandle stream) {
  if (Of(comm)->link->state() == kInProgress) return kInvalidUsage;
  const absl::Status queued = device::cuda::Enqueue(stream, [=, link = Of(comm)->link] {
    link->Run(operation, static_cast<const std::byte*>(send), static_cast<std::byte*>(receive));
  });
  return queued.ok() ? kSuccess : kUnhandledCudaError;
}

Result AllReduce(const void* send, void* receive, size_t count, DataType type, ReduceOp, Comm comm,
                 device::cuda::StreamHandle stream) {
  return Queue({Kind::kAllReduce, type, count, 0}, send, receive, comm, stream);
}
Result ReduceScatter(const void* send, void* receive, size_t count, DataType type, ReduceOp, Comm comm,
                     device::cuda::StreamHandle stream) {
  return Queue({Kind::kReduceScatter, type, count, 0}, send, receive, comm, stream);
}
Result AllGather(const void* send, void* receive, size_t count, DataType type, Comm comm,
                 device::cuda::StreamHandle stream) {
  return Queue({Kind::kAllGather, type, count, 0}, send, receive, comm, stream);
}
Result Broadcast(const void* send, void* receive, size_t count, DataType type, int root, Comm comm,
                 device::cuda::StreamHandle stream) {
  return Queue({Kind::kBroadcast, type, count, root}, send, receive, comm, stream);
}

}  // namespace

absl::StatusOr<const Api*> LoadNccl() {
  static constexpr Api kApi = {
      .get_version = &GetVersion,
      .get_unique_id = &GetUniqueId,
      .comm_init_rank_config = &CommInitRankConfig,
      .comm_get_async_error = &CommGetAsyncError,
      .comm_abort = &CommAbort,
      .get_error_string = &GetErrorString,
      .get_last_error = &GetLastError,
      .group_start = &GroupStart,
      .group_end = &GroupEnd,
      .all_reduce = &AllReduce,
      .reduce_scatter = &ReduceScatter,
      .all_gather = &AllGather,
      .broadcast = &Broadcast,
  };
  return &kApi;
}

}  // namespace lockstep::worker::nccl
