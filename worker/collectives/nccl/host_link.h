// One rank's end of what stands for NCCL's connections in host execution: TCP between processes of one machine. Rank 0
// collects what the others send, reduces it in the order of ranks and sends the results back.
//
// Threading: Run is called by one stream after another; everything else is thread-safe.
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

// A port on which rank 0 will listen; 0 when the machine gives none.
uint16_t OpenPort();

// Shared with what is queued in streams.
class Link {
 public:
  Link(int ranks, int rank, uint16_t port) : ranks_(ranks), rank_(rank), port_(port) {}
  ~Link();

  // Blocks until all ranks are there, or until Abort.
  void Connect();
  // In progress while it connects; an error once a peer was lost.
  Result state();
  void Abort();
  // What Run reads of `send` and writes to `receive`.
  size_t SentBytes(const Operation& operation) const { return Sent(operation, rank_) * operation.element_bytes(); }
  size_t ReceivedBytes(const Operation& operation) const {
    return Received(operation, rank_) * operation.element_bytes();
  }
  // In a stream. `send` and `receive` as in the call. Where a peer is lost it returns after an abort alone.
  void Run(const Operation& operation, const std::byte* send, std::byte* receive);

 private:
  void Keep(int socket);
  bool AcceptAll();
  bool ConnectToFirst();
  // What a rank contributes and gets, in elements.
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
  std::vector<int> peers_;  // rank 0's: by rank; of others: rank 0. Unchanged once connected.
};

}  // namespace lockstep::worker::nccl

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_HOST_LINK_H_
