// A vector clock: the operations of each stream that a stream, an event or the host knows to have ended.
//
// Each stream has a slot, in which its operations are counted. The slot of a destroyed stream is given to a new one,
// which continues the count: the host waited for the old stream, so knowledge of the new stream's operations implies
// knowledge of the old one's.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_CLOCK_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_CLOCK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::device::cuda::checker {

class Clock {
 public:
  uint32_t At(uint8_t slot) const { return slot < ended_.size() ? ended_[slot] : 0; }
  bool Knows(uint8_t slot, uint32_t operation) const { return At(slot) >= operation; }
  void Set(uint8_t slot, uint32_t operation) {
    if (slot >= ended_.size()) ended_.resize(size_t{slot} + 1);
    ended_[slot] = operation;
  }
  bool KnowsAllOf(const Clock& other) const {
    for (size_t i = 0; i < other.ended_.size(); ++i) {
      if (!Knows(static_cast<uint8_t>(i), other.ended_[i])) return false;
    }
    return true;
  }
  void Join(const Clock& other) {
    if (other.ended_.size() > ended_.size()) ended_.resize(other.ended_.size());
    for (size_t i = 0; i < other.ended_.size(); ++i) ended_[i] = std::max(ended_[i], other.ended_[i]);
  }

 private:
  std::vector<uint32_t> ended_;
};

}  // namespace lockstep::device::cuda::checker

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_CLOCK_H_
