// Copies between two tensors that are walked in nested loops: what most ops that move elements are.
//
// Elements are moved as units of 16 bytes where the innermost loop runs through both tensors without gaps, and through
// tiles in shared memory where it does so in one of them and another loop in the other.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_STRIDED_COPY_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_STRIDED_COPY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "worker/device/cuda/runtime/runtime.h"

namespace lockstep::device::cuda {

// Nested loops, the innermost first, in elements.
class CopyLoops {
 public:
  struct Loop {
    int64_t count;
    int64_t from_step;
    int64_t to_step;
  };

  CopyLoops() = default;
  explicit CopyLoops(const std::vector<Loop>& loops) {
    for (const Loop& loop : loops) Add(loop.count, loop.from_step, loop.to_step);
  }

  // Adds the next loop outwards: as a part of the one before where it goes on where that ends.
  void Add(int64_t count, int64_t from_step, int64_t to_step);
  // The loops of the copy back.
  void Swap();

  const std::vector<Loop>& loops() const { return loops_; }
  bool empty() const { return empty_; }
  // Whether a kernel takes so many loops.
  bool fits() const;

  // The first elements.
  int64_t from = 0;
  int64_t to = 0;

 private:
  std::vector<Loop> loops_;
  bool empty_ = false;
};

// Queues the copy of elements of `size` bytes (1, 2, 4 or 8). REQUIRES: `loops.fits()`; no two elements have one place
// in `y`.
absl::Status StridedCopy(StreamHandle stream, const CopyLoops& loops, int size, const std::byte* x, std::byte* y);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_STRIDED_COPY_H_
