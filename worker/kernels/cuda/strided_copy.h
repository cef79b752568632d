// Copies between two strided tensors, described by nested loops. Most ops that only move elements are such copies.
//
// If the innermost loop is contiguous in both tensors, elements are moved in units of 16 bytes. If it is contiguous in
// one tensor and another loop in the other, they are transposed by tiles in shared memory.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_STRIDED_COPY_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_STRIDED_COPY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "worker/device/cuda/runtime/runtime.h"

namespace lockstep::device::cuda {

// Nested loops, the innermost first; steps in elements.
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

  // Adds the next outer loop, merged with the previous one if it continues that in both tensors.
  void Add(int64_t count, int64_t from_step, int64_t to_step);
  // Exchanges source and destination.
  void Swap();

  const std::vector<Loop>& loops() const { return loops_; }
  bool empty() const { return empty_; }
  // Whether a kernel supports the number of loops.
  bool fits() const;

  // The offsets of the first elements.
  int64_t from = 0;
  int64_t to = 0;

 private:
  std::vector<Loop> loops_;
  bool empty_ = false;
};

// Queues the copy of elements of `size` bytes (1, 2, 4 or 8). REQUIRES: `loops.fits()`; destinations are distinct.
absl::Status StridedCopy(StreamHandle stream, const CopyLoops& loops, int size, const std::byte* x, std::byte* y);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_STRIDED_COPY_H_
