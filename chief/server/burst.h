// Decides when the loop takes in many inputs before the core decides what follows from them (BurstBegins, BurstEnds).
// The size of a burst is the length of the queue when it begins; the loop never waits for further inputs.
//
// Threading: thread-compatible; owned by ChiefLoop.
#ifndef LOCKSTEP_CHIEF_SERVER_BURST_H_
#define LOCKSTEP_CHIEF_SERVER_BURST_H_

#include <algorithm>
#include <cstddef>

namespace lockstep::chief {

class Burst {
 public:
  static constexpr size_t kLeast = 8;       // shorter queues are decided input by input
  static constexpr size_t kLongest = 1024;  // longer queues are split, so that decisions are not delayed

  // An input was taken from the queue, and `waiting` others are behind it. Returns whether a burst begins with it.
  bool Begins(size_t waiting) {
    if (left_ != 0 || waiting + 1 < kLeast) return false;
    left_ = std::min(waiting + 1, kLongest);
    return true;
  }
  // An input was handled. Returns whether it was the last of a burst.
  bool Ends() { return left_ != 0 && --left_ == 0; }
  // A Tick ended the burst.
  void Cancel() { left_ = 0; }

 private:
  size_t left_ = 0;  // inputs of the burst that were not handled yet
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_BURST_H_
