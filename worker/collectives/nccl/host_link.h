// One rank's connections in the NCCL fake of host execution: TCP between processes of one machine. Rank 0 collects the
// other ranks' buffers, reduces them in rank order and sends the results back.
//
// Threading: Run is called by one thread at a time; all other functions are thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_NCCL_HOST_LINK_H_
#define LOCKSTEP_WORKER_COLLECTIVES_NCCL_HOST_LINK_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "worker/collectives/nccl/nccl_api.h"

namespace lockstep::worker::nccl {

enum class Kind : uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast };

// A collective call; all ranks must make the same one.
struct Operation {
  Kind kind = Kind::kAllReduce;
  DataType type = kInt64;
  uint64_t count = 0;  // as in NCCL: reduce-scatter counts the elements received, all-gather those sent, else all
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

// Picks a free port for rank 0 to listen on; 0 when there is none.
uint16_t OpenPort();

class Link {
 public:
  Link(int ranks, int rank, uint16_t port) : ranks_(ranks), rank_(rank), port_(port) {}
  ~Link();

  // Blocks until all ranks are connected, or until Abort.
  void Connect();
  // kInProgress while connecting; an error once a peer is lost.
  Result state();
  void Abort();
  // The bytes that Run reads from `send` and writes to `receive`.
  size_t SentBytes(const Operation& operation) const { return Sent(operation, rank_) * operation.element_bytes(); }
  size_t ReceivedBytes(const Operation& operation) const {
    return Received(operation, rank_) * operation.element_bytes();
  }
  // Performs the operation; called from a stream. Blocks; after the loss of a peer it returns only on Abort, as NCCL's
  // kernels do.
  void Run(const Operation& operation, const std::byte* send, std::byte* receive);

 private:
  void Keep(int socket);
  bool AcceptAll();
  bool ConnectToFirst();
  // The elements that a rank contributes and receives.
  size_t Sent(const Operation& o, int rank) const;
  size_t Received(const Operation& o, int rank) const;
  bool Ask(const Operation& operation, const std::byte* send, std::byte* receive);
  bool Serve(const Operation& operation, const std::byte* send, std::byte* receive);

  const int ranks_;
  const int rank_;
  const uint16_t port_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Result state_ = kInProgress;
  bool aborted_ = false;
  int listener_ = -1;
  std::vector<int> peers_;  // sockets: on rank 0 by rank, elsewhere to rank 0 alone. Constant once connected.
};

}  // namespace lockstep::worker::nccl

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_HOST_LINK_H_
