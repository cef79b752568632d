// One collective call in progress, without sockets: decides which pieces to send to which rank, where received pieces
// are stored, and what is summed and forwarded when they arrive.
//
// To reduce, each rank owns one block. Every rank sends each owner its contribution to that block, in pieces; the owner
// sums them and sends the result to all, piece by piece (docs/design/0002-direct-exchange.md). A broadcast travels
// along a chain of ranks. The pieces of a block depend on its size alone, so all ranks cut alike, and arrive in order.
//
// Pieces of an exact sum that lie in memory which a peer can read (host_memory.h) are not sent to it: it is told where
// they are, and reads them there.
//
// Threading: owned by the communicator's thread.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_EXCHANGE_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_EXCHANGE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/collectives/call.h"
#include "worker/collectives/shared/host_memory.h"
#include "worker/collectives/sockets/peer_link.h"

namespace lockstep::worker {

class Exchange {
 public:
  using SendFrame = std::function<void(int peer, OutgoingFrame frame)>;
  // `most_elements` is the largest piece, the same on every rank. `send` is called from the functions below. `memory`:
  // what ranks of this host share; null: nothing.
  Exchange(Call call, int rank, int size, int64_t most_elements, SendFrame send, const HostMemory* memory = nullptr);

  const Call& call() const { return call_; }
  // The most bytes that this rank sends to one peer in this call. REQUIRES: no peer was released.
  size_t MostBytesToAPeer() const;

  // Allows frames to `peer` and sends those that were held back until here.
  void Release(int peer);

  // The place for the bytes of a frame of `peer`; may be in `scratch`, which must stay as it is until OnReceived
  // returns. Unavailable when the call expects no such frame. OnReceived takes the frame in once its bytes are there.
  absl::StatusOr<char*> PlaceFor(int peer, const FrameHead& head, std::vector<char>& scratch);
  // Unavailable when the peer names memory that it does not share.
  absl::Status OnReceived(int peer, const FrameHead& head, char* place);
  // PlaceFor and OnReceived for a frame that was buffered. Uses no scratch, into which a frame of another call may be
  // arriving.
  absl::Status TakeWaited(int peer, const FrameHead& head, absl::Span<const char> bytes);
  // `peer` has read what it was told of in this call. Unavailable when it was told of nothing.
  absl::Status OnRead(int peer);

  // All frames were received and sent, and peers have read: the result is complete, and the buffers may be reused.
  bool Done() const { return left_ == 0 && unsent_ == 0 && unread_ == 0; }
  // Bytes of pieces that peers were told to read, or that were read of them.
  uint64_t shared_bytes() const { return shared_bytes_; }
  // The lowest rank from which a frame is missing, or -1.
  int Awaited() const;
  bool Gathers() const;  // only results are missing, no contributions

 private:
  struct Piece {
    int64_t begin = 0;  // in the block
    int64_t size = 0;
  };
  struct Block {
    int64_t offset = 0;  // elements
    int64_t size = 0;
    int64_t piece_size = 0;
    int64_t pieces = 0;

    Piece piece(int64_t number) const {
      const int64_t begin = number * piece_size;
      return {begin, std::min(piece_size, size - begin)};
    }
  };
  // The pieces that a peer has yet to send, and the numbers of the next ones.
  struct Expected {
    int64_t reduce = 0;
    int64_t gather = 0;
    int64_t next_reduce = 0;
    int64_t next_gather = 0;
    bool read_here = false;  // some of them were read from the peer's memory
    bool complete() const { return next_reduce == reduce && next_gather == gather; }
  };

  void SetUp();
  void Cut(const std::vector<int64_t>& sizes, int64_t most_elements);
  void SetUpBroadcast();
  void SendFirst();
  const Block& own() const { return blocks_[static_cast<size_t>(rank_)]; }
  void SendPiece(int peer, FrameKind kind, const Block& block, int64_t piece, const char* base, size_t element_bytes);
  void SendGathered(int64_t piece);

  // Whether a piece of `elements` elements, of a contribution or of a result, may have this size in bytes.
  bool Fits(FrameKind kind, int64_t elements, size_t bytes) const;
  // The range in which `peer` can read these bytes of an exact sum; none: they have to be sent.
  std::optional<SharedRange> RangeFor(int peer, const char* begin, size_t bytes) const;
  absl::Status ReadShared(int peer, const FrameHead& head, const char* place);
  // Adds a contribution to a piece of the own block, and then counts it: the last one completes the piece.
  void AddPiece(int64_t piece, size_t bytes, const char* place);
  void CountPiece(int64_t piece);
  // Tells `peer`, once, that all of its pieces were read.
  void TellRead(int peer);
  // Completes an exact sum: adds the last peer's piece and the own contribution to the sum so far, and rounds.
  void SumExactPiece(const Piece& piece, const ExactAddends& last);
  void SumFloatPiece(const Piece& piece);
  void SumSmall();

  Call call_;
  const int rank_;
  const int size_;
  const int64_t most_elements_;
  const SendFrame send_;
  const HostMemory* const memory_;  // null for calls whose pieces are sent
  std::vector<Block> blocks_;       // by rank
  size_t reduce_bytes_ = 0;         // per element of this rank's contribution; 0: the call does not reduce
  size_t gather_bytes_ = 0;         // per element of the result; 0: the call does not gather
  const char* addends_ = nullptr;
  char* gathered_ = nullptr;
  bool small_ = false;  // an all-reduce of few bytes: gathers all contributions, each rank sums
  int forwards_to_ = -1;
  std::vector<Expected> expected_;  // by rank
  int64_t left_ = 0;                // frames that have yet to arrive
  int unsent_ = 0;
  std::vector<char> told_;  // by rank: was told of a range
  int unread_ = 0;          // ranks that were told and have not read yet
  uint64_t shared_bytes_ = 0;
  std::vector<std::vector<OutgoingFrame>> held_;  // by rank: frames held back until Release
  std::vector<char> released_;                    // by rank
  std::vector<int> came_;                         // by piece of the own block: peers whose contribution arrived
  std::vector<int64_t> sums_;                     // exact sums: the own block, summed over the peers so far
  std::vector<float> floats_;                     // float sums: every rank's contribution to the own block
  std::vector<int64_t> all_;                      // small all-reduce: every rank's values
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_EXCHANGE_H_
