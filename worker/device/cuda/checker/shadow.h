// Shadow memory: the Cells of a range of memory. A kilobyte has one cell as long as it is accessed as a whole, then one
// per four bytes, and one per byte where smaller pieces are accessed.
//
// Threading: thread-compatible; callers hold the checker's lock (checker.h).
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_SHADOW_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_SHADOW_H_

#include <algorithm>
#include <cstddef>

#include "worker/device/cuda/checker/access.h"

namespace lockstep::device::cuda::checker {

class Shadow {
 public:
  // Uses memory only for parts that are visited. `bytes` may be 0.
  explicit Shadow(size_t bytes);
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
  ~Shadow();

  size_t bytes() const { return bytes_; }

  // Calls visit(offset, cell) for the cells of [offset, offset + bytes), in order.
  template <typename Visitor>
  void Visit(size_t offset, size_t bytes, Visitor visit) {
    const size_t end = offset + bytes;
    while (offset < end) {
      const Part part = CellAt(offset, end - offset);
      visit(offset, *part.cell);
      offset += part.bytes;
    }
  }

 private:
  static constexpr size_t kWord = 4;
  static constexpr size_t kPage = 1024;

  struct Part {
    Cell* cell;
    size_t bytes;
  };
  // The cell at `offset` for an access of `bytes`; it covers at most that many.
  Part CellAt(size_t offset, size_t bytes) {
    const size_t page = offset / kPage;
    if (!is_expanded_[page]) {
      if (offset % kPage == 0 && bytes >= kPage) return {&pages_[page], kPage};
      Expand(page);
    }
    const size_t word = offset / kWord;
    if (!is_split_[word]) {
      if (offset % kWord == 0 && bytes >= kWord) return {&words_[word], kWord};
      Split(word);
    }
    return {&split_[offset], 1};
  }

  size_t pages() const { return bytes_ / kPage + 1; }
  void Expand(size_t page) {
    is_expanded_[page] = true;
    std::fill_n(words_ + page * (kPage / kWord), kPage / kWord, pages_[page]);
  }
  void Split(size_t word) {
    is_split_[word] = true;
    std::fill_n(split_ + word * kWord, kWord, words_[word]);
  }

  const size_t bytes_;
  Cell* const pages_;
  bool* const is_expanded_;
  Cell* const words_;
  bool* const is_split_;
  Cell* const split_;  // one per byte, used where is_split_
};

}  // namespace lockstep::device::cuda::checker

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_SHADOW_H_
