// Cells for a range of memory: one for every four bytes, and where smaller pieces are touched, one for each byte.
//
// Threading: thread-compatible; the checker locks (checker.h).
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_SHADOW_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_SHADOW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "worker/device/cuda/checker/access.h"

namespace lockstep::device::cuda::checker {

class Shadow {
 public:
  // Takes no memory before the range is touched. `bytes` may be 0.
  explicit Shadow(size_t bytes);
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
  ~Shadow();

  size_t bytes() const { return bytes_; }

  // Calls visit(offset, cell) for the cells of [offset, offset + bytes), until it returns false.
  template <typename Visit>
  bool Visited(size_t offset, size_t bytes, Visit visit) {
    const size_t end = offset + bytes;
    while (offset < end) {
      const size_t word = offset / kWord;
      if (offset % kWord == 0 && end - offset >= kWord && !IsSplit(word)) {
        if (!visit(offset, words_[word])) return false;
        offset += kWord;
      } else {
        Split(word);
        if (!visit(offset, split_[offset])) return false;
        ++offset;
      }
    }
    return true;
  }

 private:
  static constexpr size_t kWord = 4;

  bool IsSplit(size_t word) const { return is_split_[word] != 0; }
  void Split(size_t word) {
    if (IsSplit(word)) return;
    is_split_[word] = 1;
    std::fill_n(split_ + word * kWord, kWord, words_[word]);
  }

  const size_t bytes_;
  Cell* const words_;
  Cell* const split_;  // of each byte, where is_split_
  uint8_t* const is_split_;
};

}  // namespace lockstep::device::cuda::checker

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_SHADOW_H_
