// Frames of calls that this rank has not made yet, up to a small limit. A frame counts once it is complete.
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

  // Where the bytes of a frame belong that begins to come; they stay in place until another one does. Unavailable: it
  // would be more than a peer may send before it is answered, or it is empty, which no piece is.
  absl::StatusOr<char*> PlaceFor(const FrameHead& head) {
    DropUnfinished();
    if (head.bytes == 0) return absl::UnavailableError("it sent an empty piece");
    if (held_bytes_ + head.bytes > most_bytes_) {
      return absl::UnavailableError("it sent more of a call than it may before this rank is in it");
    }
    return unfinished_.emplace(EarlyFrame{head, std::vector<char>(head.bytes)}).bytes.data();
  }

  // What began to come does not count: it was given up.
  void DropUnfinished() { unfinished_.reset(); }

  // What began to come is there now. None: nothing did.
  std::optional<EarlyFrame> Finish() { return std::exchange(unfinished_, std::nullopt); }

  // Waits for its call. REQUIRES: Finish gave it.
  void Keep(EarlyFrame frame) {
    held_bytes_ += frame.bytes.size();
    by_call_[frame.head.sequence].push_back(std::move(frame));
  }

  // Those of one call that wait, in order; they are not kept.
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
