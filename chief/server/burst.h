// Decides when a loop takes many inputs in before its core decides what follows from them (BurstBegins, BurstEnds).
// What lies in the queue when a burst begins is its size: nothing is waited for.
//
// Threading: thread-compatible; owned by ChiefLoop.
#ifndef LOCKSTEP_CHIEF_SERVER_BURST_H_
#define LOCKSTEP_CHIEF_SERVER_BURST_H_

#include <algorithm>
#include <cstddef>

namespace lockstep::chief {

class Burst {
 public:
  static constexpr size_t kLeast = 8;       // inputs; fewer are decided one by one
  static constexpr size_t kLongest = 1024;  // inputs, so that decisions are not put off for long

  // An input was taken from the queue, and `waiting` others lie behind it: does a burst begin with it?
  bool Begins(size_t waiting) {
    if (left_ != 0 || waiting + 1 < kLeast) return false;
    left_ = std::min(waiting + 1, kLongest);
    return true;
  }
  // An input was handled: was it the last of a burst?
  bool Ends() { return left_ != 0 && --left_ == 0; }
  // A Tick ended it.
  void Cancel() { left_ = 0; }

 private:
  size_t left_ = 0;  // inputs of the burst that were not handled yet
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_BURST_H_
