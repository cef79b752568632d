// A view of a tensor as rows: some dimensions, in any order of memory, are the elements of a row, the others count the
// rows; and a distribution of the work over threads.
//
// Invariants
//   * A plan depends on shapes alone, never on the GPU, since it decides the order of sums.
//   * Rows are numbered in row-major order over the kept dimensions, elements in row-major order over the walked ones.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_ROW_PLAN_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_ROW_PLAN_H_

#include <cstdint>
#include <vector>

#include "common/tensor/shape.h"
#include "worker/kernels/cuda/fast_divide.h"

namespace lockstep::device::cuda {

// n / divisor. REQUIRES: n >= 0.
LS_HD inline int QuotientOf(int n, const FastDivide& divisor) {
  return static_cast<int>(divisor.Quotient(static_cast<uint32_t>(n)));
}

// The offsets of a row-major walk over some dimensions of a tensor.
struct Nest {
  static constexpr int kLevels = 4;

  // REQUIRES: 0 <= i < the product of the extents.
  LS_HD int64_t Offset(int i) const {
    int64_t offset = 0;
    for (int l = 0; l < levels - 1; ++l) {
      const int outer = QuotientOf(i, extents[l]);
      offset += int64_t{i - outer * static_cast<int>(extents[l].divisor())} * strides[l];
      i = outer;
    }
    return offset + int64_t{i} * strides[levels - 1];
  }

  int levels = 1;  // innermost first
  FastDivide extents[kLevels];
  int64_t strides[kLevels] = {};
};

// The threads that work on a row together.
enum class TeamKind : uint8_t {
  kThread,  // one thread; a block has 256 rows
  kColumn,  // eight threads; a block has 32 adjacent rows
  kWarp,    // a warp; a block has 4 rows
  kBlock,   // a block of 256 threads
};

// The number of threads of a team.
constexpr int TeamSize(TeamKind kind) {
  return kind == TeamKind::kThread ? 1 : kind == TeamKind::kColumn ? 8 : kind == TeamKind::kWarp ? 32 : 256;
}

struct RowPlan {
  Nest rows;
  Nest elements;
  int64_t row_count = 0;
  int extent = 0;  // elements of a row
  TeamKind kind = TeamKind::kThread;
  // Rows are cut into `parts` runs of `chunk` elements, each with a team of its own; 1 if a team must see a whole row.
  int chunk = 0;
  int parts = 1;
  bool served = false;  // false: walked and kept dimensions alternate too often, or rows or elements approach 2^31
};

// The dimensions with `walked` true form the elements. The plan has one part.
RowPlan PlanRows(const Shape& shape, const std::vector<bool>& walked);
// Elements along `axis` (may be negative), or along all dimensions from it on.
RowPlan PlanAxis(const Shape& shape, int64_t axis);
RowPlan PlanTail(const Shape& shape, int64_t axis);
// One row per index of `axis`, whose elements run over all other dimensions.
RowPlan PlanPerIndex(const Shape& shape, size_t axis);
// One row of `count` adjacent elements.
RowPlan PlanAll(int64_t count);

// The plan with its rows cut into enough parts to occupy a GPU, with at least `least` elements per thread.
RowPlan InParts(RowPlan plan, int least = 16);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_ROW_PLAN_H_
