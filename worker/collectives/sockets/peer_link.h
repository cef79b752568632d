// Frames over a PeerStream, both ways, without blocking: what calls send a peer goes out in the order of the calls, and
// what the peer sends goes straight to where it belongs.
//
// A frame is a head, its bytes, and a mark that says whether the bytes count. A frame under way when its call was given
// up is sent to its end, with other bytes, and does not count: what follows it is still understood.
//
// Threading: thread-compatible; the communicator's thread owns it.
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
  kCall = 1,  // the sender is in this call: CallWords
  kReduce,    // a piece of the receiver's block
  kGather,    // a piece of the sender's block, or of what is broadcast
  kNote,      // why the sender aborts; nothing follows
  kAsk,       // answer, please
  kAnswer,
};

// Of the machine's byte order, as CallWords: the ranks of a generation speak one protocol (the session checks its
// number), which is of little-endian machines.
struct FrameHead {
  FrameKind kind = FrameKind::kCall;
  uint32_t bytes = 0;
  uint64_t sequence = 0;  // of the call
  uint64_t offset = 0;    // in elements of the block
};

inline constexpr size_t kMostFrameBytes = 4 * 1024 * 1024;

struct OutgoingFrame {
  FrameHead head;
  const char* bytes = nullptr;  // stays in place until it is sent
  std::string owned;            // instead of bytes
  int* unsent = nullptr;        // one less when the bytes may be overwritten; null: nobody counts

  const char* begin() const { return bytes != nullptr ? bytes : owned.data(); }
};

// What a link tells. An error breaks the connection.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  // Where the bytes of a frame belong: room for head.bytes.
  virtual absl::StatusOr<char*> PlaceFor(int peer, const FrameHead& head) = 0;
  // They are there, and count.
  virtual absl::Status Came(int peer, const FrameHead& head, char* place) = 0;
};

class PeerLink {
 public:
  PeerLink(int peer, std::unique_ptr<PeerStream> stream, LinkEvents& events);

  int peer() const { return peer_; }
  int fd() const { return stream_->fd(); }

  void Send(OutgoingFrame frame);
  // Sends what the socket takes now.
  absl::Status Write();
  bool blocked() const { return blocked_; }  // the socket takes no more now

  // Takes in what is there, up to a few MiB.
  absl::Status Read();
  bool has_more() const { return has_more_; }  // the last Read left some, which the socket may not announce

  // Drops what is not sent; a frame under way will not count.
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

  // Out. Frames whose call came first go first; those in started_ keep their order.
  std::map<uint64_t, std::deque<OutgoingFrame>> waiting_;  // by sequence
  std::deque<OutgoingFrame> started_;
  size_t sent_ = 0;  // of the first of started_
  bool void_ = false;
  bool blocked_ = false;
  std::vector<char> zeros_;  // in place of what was given up

  // In. Behind a frame's bytes its mark and the next head are read with them.
  bool has_more_ = false;
  FrameHead head_;
  size_t head_have_ = 0;
  bool in_body_ = false;
  char* place_ = nullptr;
  size_t body_have_ = 0;  // of the bytes, the mark and the next head
  char tail_[kMarkBytes + kHeadBytes];
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_LINK_H_
