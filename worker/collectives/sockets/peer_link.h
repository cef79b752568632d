// Non-blocking frames over a PeerStream, in both directions. Outgoing frames leave in the order of their calls;
// incoming bytes are received directly into their destination.
//
// A frame is a head, its bytes, and a mark that says whether the bytes are valid. When a call is given up in the middle
// of a frame, the frame is filled up with zeros and marked invalid, so that the stream stays in sync.
//
// Threading: owned by the communicator's thread.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_LINK_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_LINK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/collectives/sockets/peer_stream.h"

namespace lockstep::worker {

enum class FrameKind : uint32_t {
  kCall = 1,  // the sender has made this call; bytes: CallWords
  kReduce,    // a piece of the sender's contribution to the receiver's block
  kGather,    // a piece of the sender's block, or of a broadcast
  kNote,      // the reason why the sender aborts; the last frame
  kAsk,       // asks for kAnswer, to test the connection
  kAnswer,
  kReduceAt,  // kReduce and kGather whose bytes are in memory that the sender shares; bytes: the SharedRange
  kGatherAt,
  kRead,  // the sender has read all of the receiver's kReduceAt and kGatherAt of this call
};

// Sent in the machine's byte order, like CallWords: all ranks of a generation run the same protocol version (the
// session checks it), which is defined for little-endian machines.
struct FrameHead {
  FrameKind kind = FrameKind::kCall;
  uint32_t bytes = 0;
  uint64_t sequence = 0;  // of the call
  uint64_t offset = 0;    // in elements of the block
};

inline constexpr size_t kMostFrameBytes = 4 * 1024 * 1024;

struct OutgoingFrame {
  FrameHead head;
  const char* bytes = nullptr;  // valid until sent
  std::string owned;            // used when `bytes` is null
  int* unsent = nullptr;        // decremented when `bytes` may be overwritten; may be null

  const char* begin() const { return bytes != nullptr ? bytes : owned.data(); }
};

// The receiver of a link's frames. An error breaks the connection.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  // Returns memory for the head.bytes bytes of a frame.
  virtual absl::StatusOr<char*> PlaceFor(int peer, const FrameHead& head) = 0;
  // The bytes at `place` have arrived and are valid.
  virtual absl::Status OnReceived(int peer, const FrameHead& head, char* place) = 0;
};

class PeerLink {
 public:
  PeerLink(int peer, std::unique_ptr<PeerStream> stream, LinkEvents& events);

  int peer() const { return peer_; }
  int fd() const { return stream_->fd(); }

  void Send(OutgoingFrame frame);
  // Sends as much as the socket accepts now.
  absl::Status Write();
  bool blocked() const { return blocked_; }  // the socket accepts no more now

  // Receives what is available, up to a few MiB.
  absl::Status Read();
  bool has_more() const { return has_more_; }  // the last Read left bytes, for which poll may not report the socket

  // Drops all unsent frames; a frame that is partly sent will be marked invalid.
  void GiveUp();

  uint64_t bytes_moved() const { return bytes_moved_; }

 private:
  static constexpr size_t kHeadBytes = sizeof(FrameHead);
  static constexpr size_t kMarkBytes = 1;

  void Start();
  void Account(size_t sent);
  absl::Status TakeHead();
  absl::Status TakeBody();

  const int peer_;
  const std::unique_ptr<PeerStream> stream_;
  LinkEvents& events_;
  uint64_t bytes_moved_ = 0;

  // Outgoing. Frames of earlier calls go first; those in started_ keep their order.
  std::map<uint64_t, std::deque<OutgoingFrame>> waiting_;  // by sequence
  std::deque<OutgoingFrame> started_;
  size_t sent_ = 0;         // of the first of started_
  bool abandoned_ = false;  // the first of started_ was given up
  bool blocked_ = false;
  std::vector<char> zeros_;  // fills up a frame that was given up

  // Incoming. One read takes a frame's bytes, its mark and the head of the next frame.
  bool has_more_ = false;
  FrameHead head_;
  size_t head_have_ = 0;
  bool in_body_ = false;
  char* place_ = nullptr;
  size_t body_have_ = 0;  // received of the bytes, the mark and the next head
  char tail_[kMarkBytes + kHeadBytes];
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_LINK_H_
