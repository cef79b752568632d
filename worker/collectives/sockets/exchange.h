// One collective call in progress, without sockets: which pieces go to which rank, where received pieces belong, and
// what is summed and forwarded when they arrive.
//
// Each rank sends each other one its block at once, in pieces, and the reduced own block to everybody, piece by piece
// (docs/design/0002-direct-exchange.md). A broadcast goes through the ranks as a chain. Pieces are cut by the size of
// their block alone, so in the same way on every rank, and those of a block come in order.
//
// Threading: thread-compatible; the communicator's thread owns it.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_EXCHANGE_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/collectives/call.h"
#include "worker/collectives/sockets/peer_link.h"

namespace lockstep::worker {

// What ranks tell one another of a call before they exchange a byte of it.
struct CallWords {
  int64_t step = 0;
  uint32_t attempt = 0;
  uint32_t kind = 0;
  int64_t root = 0;
  uint64_t elements = 0;  // integers, addends or floats
  uint64_t bytes = 0;
  uint64_t blocks = 0;  // a digest of their sizes, or of the runs of an exact sum

  friend bool operator==(const CallWords&, const CallWords&) = default;
  static CallWords Of(const Call& call);
  std::string Name() const;  // "all-gather of step 41, attempt 0, over 0 elements and 100 bytes"
};

class Exchange {
 public:
  using SendFrame = std::function<void(int peer, OutgoingFrame frame)>;
  // `most_elements` limits a piece, the same on every rank. `send` is called from the members below.
  Exchange(Call call, int rank, int size, int64_t most_elements, SendFrame send);

  const Call& call() const { return call_; }
  // Bytes that this rank sends a peer at most, from the first piece to the last. REQUIRES: nobody was released.
  size_t MostBytesToAPeer() const;

  // Sends what there is to send a peer; nothing is sent to it before.
  void Release(int peer);

  // Where a frame of `peer` belongs; `scratch` holds a piece for as long as Came takes. Unavailable: it belongs
  // nowhere.
  absl::StatusOr<char*> PlaceFor(int peer, const FrameHead& head, std::vector<char>& scratch);
  void Came(int peer, const FrameHead& head, char* place);
  // Both, for a frame that waited. It needs no scratch, which a frame of another call may be under way into.
  absl::Status TakeWaited(int peer, const FrameHead& head, absl::Span<const char> bytes);

  // All came, and all was sent. Whoever waits has the result, and the buffers.
  bool Done() const { return left_ == 0 && unsent_ == 0; }
  // The lowest rank that something is awaited of, or -1.
  int Awaited() const;
  bool Gathers() const;  // what is awaited is the result

 private:
  struct Block {
    int64_t offset = 0;  // elements
    int64_t size = 0;
    int64_t piece_size = 0;
    int64_t pieces = 0;
  };
  struct Piece {
    int64_t begin = 0;  // in the block
    int64_t size = 0;
  };
  // Pieces that a peer has yet to send.
  struct Expected {
    int64_t reduce = 0;
    int64_t gather = 0;
    int64_t next_reduce = 0;
    int64_t next_gather = 0;
  };

  void SetUp();
  void Cut(const std::vector<int64_t>& sizes, int64_t most_elements);
  void SetUpBroadcast();
  void SendFirst();
  const Block& own() const { return blocks_[static_cast<size_t>(rank_)]; }
  static Piece PieceOf(const Block& block, int64_t piece);
  void SendPiece(int peer, FrameKind kind, const Block& block, int64_t piece, const char* base, size_t element_bytes);
  void SendGathered(int64_t piece);

  // Whether a peer's piece of the own block, of so many elements, may take these bytes.
  bool FitsReduced(int64_t elements, size_t bytes) const;
  void AddPiece(int64_t piece, size_t bytes, char* place);
  // The last piece has come: adds it and what this rank contributes to what came before, and rounds.
  void SumExactPiece(const Piece& piece, const ExactAddends& last);
  void SumFloatPiece(const Piece& piece);
  void SumSmall();

  Call call_;
  const int rank_;
  const int size_;
  const int64_t most_elements_;
  const SendFrame send_;
  std::vector<Block> blocks_;  // by rank
  size_t reduce_bytes_ = 0;    // of an element that this rank has summed; 0: none is
  size_t gather_bytes_ = 0;    // of an element that is gathered; 0: none is
  const char* addends_ = nullptr;
  char* gathered_ = nullptr;
  bool small_ = false;  // an all-reduce by gathering everything
  int forwards_to_ = -1;
  std::vector<Expected> expected_;  // by rank
  int64_t left_ = 0;                // frames that have yet to come
  int unsent_ = 0;
  std::vector<std::vector<OutgoingFrame>> held_;  // by rank: until it is released
  std::vector<char> released_;                    // by rank
  std::vector<int> came_;                         // by piece of the own block: peers that sent theirs
  std::vector<int64_t> sums_;                     // of an exact sum: of the own block, what came from all but the last
  std::vector<float> floats_;                     // of float sums: by rank the own block
  std::vector<int64_t> all_;                      // of a small all-reduce: by rank the values
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_EXCHANGE_H_
