// A tensor seen as rows: which of its dimensions a kernel walks along (the elements of a row) and which it keeps (the
// rows), in whatever order they lie, and how threads share the work.
//
// Invariants
//   * Everything follows from shapes, never from the GPU: it decides the order of sums.
//   * Row r and element i count in row-major order over the dimensions that are kept, and over the others.
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

// Offsets of a row-major walk over some dimensions of a tensor.
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

// Which threads work on a row together.
enum class TeamKind : uint8_t {
  kThread,  // one, of a block of 256 rows
  kColumn,  // eight of a block of 32 neighbouring rows
  kWarp,    // a warp, of a block of 4 rows
  kBlock,   // a block of 256
};

// How many.
constexpr int TeamSize(TeamKind kind) {
  return kind == TeamKind::kThread ? 1 : kind == TeamKind::kColumn ? 8 : kind == TeamKind::kWarp ? 32 : 256;
}

struct RowPlan {
  Nest rows;
  Nest elements;
  int64_t row_count = 0;
  int extent = 0;  // elements of a row
  TeamKind kind = TeamKind::kThread;
  // Rows are cut in `parts` runs of `chunk` elements, each with a team of its own. 1 where a team has to see all of a
  // row.
  int chunk = 0;
  int parts = 1;
  bool served = false;  // false: too many dimensions alternate, or there are nearly 2^31 rows or elements of one
};

// The dimensions with `walked` are the elements. One part.
RowPlan PlanRows(const Shape& shape, const std::vector<bool>& walked);
// Elements along `axis` (may be negative), or along all dimensions from it on.
RowPlan PlanAxis(const Shape& shape, int64_t axis);
RowPlan PlanTail(const Shape& shape, int64_t axis);
// Rows are what `axis` counts, elements all that lies along the other dimensions.
RowPlan PlanPerIndex(const Shape& shape, size_t axis);
// One row of `count` neighbouring elements.
RowPlan PlanAll(int64_t count);

// The same in as many parts as give enough threads work, at least `least` elements for each.
RowPlan InParts(RowPlan plan, int least = 16);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_ROW_PLAN_H_
