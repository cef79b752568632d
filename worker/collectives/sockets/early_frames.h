// What a peer sent of calls that this rank is not in yet: a little, and no more.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_EARLY_FRAMES_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_EARLY_FRAMES_H_

#include <cstdint>
#include <deque>
#include <map>
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

  // Where the bytes of a frame wait. Unavailable: it would be more than a peer may send before it is answered.
  absl::StatusOr<char*> PlaceFor(const FrameHead& head) {
    if (held_bytes_ + head.bytes > most_bytes_) {
      return absl::UnavailableError("it sent more of a call than it may before this rank is in it");
    }
    held_bytes_ += head.bytes;
    std::deque<EarlyFrame>& frames = by_call_[head.sequence];
    frames.push_back({head, std::vector<char>(head.bytes)});
    return frames.back().bytes.data();
  }

  // Those of one call, in order; they are not kept.
  std::deque<EarlyFrame> Take(uint64_t sequence) {
    auto node = by_call_.extract(sequence);
    if (node.empty()) return {};
    for (const EarlyFrame& frame : node.mapped()) held_bytes_ -= frame.bytes.size();
    return std::move(node.mapped());
  }

 private:
  const size_t most_bytes_;
  size_t held_bytes_ = 0;
  std::map<uint64_t, std::deque<EarlyFrame>> by_call_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_EARLY_FRAMES_H_
