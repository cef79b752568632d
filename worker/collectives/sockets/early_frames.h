// Buffers frames of calls that this rank has not made yet, up to a small limit of bytes. A frame counts once complete.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_EARLY_FRAMES_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_EARLY_FRAMES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/collectives/sockets/peer_link.h"

namespace lockstep::worker {

struct EarlyFrame {
  FrameHead head;
  std::vector<char> bytes;
};

class EarlyFrames {
 public:
  explicit EarlyFrames(size_t most_bytes) : most_bytes_(most_bytes) {}

  // Begins a frame and returns the place for its bytes, which is valid until the next frame begins. Unavailable when
  // the peer sends more than the limit, or an empty frame: no piece is empty.
  absl::StatusOr<char*> PlaceFor(const FrameHead& head) {
    DropUnfinished();
    if (head.bytes == 0) return absl::UnavailableError("it sent an empty piece");
    if (held_bytes_ + head.bytes > most_bytes_) {
      return absl::UnavailableError("it sent more of a call than it may before this rank is in it");
    }
    return unfinished_.emplace(EarlyFrame{head, std::vector<char>(head.bytes)}).bytes.data();
  }

  // Drops the frame that is being received.
  void DropUnfinished() { unfinished_.reset(); }

  // Returns the frame that was being received, which is complete; none if no frame was begun.
  std::optional<EarlyFrame> Finish() { return std::exchange(unfinished_, std::nullopt); }

  // Stores a frame for its call. REQUIRES: `frame` came from Finish.
  void Keep(EarlyFrame frame) {
    held_bytes_ += frame.bytes.size();
    by_call_[frame.head.sequence].push_back(std::move(frame));
  }

  // Removes and returns the frames of one call, in the order of arrival.
  std::deque<EarlyFrame> Take(uint64_t sequence) {
    auto node = by_call_.extract(sequence);
    if (node.empty()) return {};
    for (const EarlyFrame& frame : node.mapped()) held_bytes_ -= frame.bytes.size();
    return std::move(node.mapped());
  }

 private:
  const size_t most_bytes_;
  size_t held_bytes_ = 0;
  std::optional<EarlyFrame> unfinished_;
  std::map<uint64_t, std::deque<EarlyFrame>> by_call_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_EARLY_FRAMES_H_
