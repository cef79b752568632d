// Two-dimensional launches over a tensor: rows along the innermost dimension, with the threads of a block in columns
// and rows. Divisions are needed only once per row, one for each outer dimension but the last, not per element.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_ROWS_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "worker/device/cuda/runtime/launch.h"
#include "worker/kernels/cuda/fast_divide.h"

namespace lockstep::device::cuda {

inline constexpr int kMostOuter = 11;

// The outer dimensions, innermost first, and their strides in kTensors tensors.
template <int kTensors>
struct OuterDimensions {
  int count = 0;
  WideDivide extents[kMostOuter];
  int64_t steps[kTensors][kMostOuter] = {};

  // Adds the next dimension; false when there are too many.
  bool Add(int64_t extent, const int64_t (&step)[kTensors]) {
    if (extent == 1) return true;
    if (count == kMostOuter) return false;
    extents[count] = WideDivide(extent);
    for (int i = 0; i < kTensors; ++i) steps[i][count] = step[i];
    ++count;
    return true;
  }

  // Adds the offset of row `row` in each tensor to `offsets`.
  LS_HD void Find(int64_t row, int64_t (&offsets)[kTensors]) const {
    for (int d = 0; d < count; ++d) {
      const int64_t at = d + 1 < count ? extents[d].Split(&row) : row;
      for (int i = 0; i < kTensors; ++i) offsets[i] += at * steps[i][d];
    }
  }
};

// The launch shape for `rows` rows of `columns` columns. The number of threads along a row is a power of two, at least
// a warp if there are as many columns, and if possible such that less than a fifth of them idle.
inline LaunchShape RowsShape(int64_t rows, int64_t columns) {
  unsigned across = 1;
  while (across < unsigned{kBlock} && across < columns) across *= 2;
  const auto idle = [&] { return (across - columns % across) % across; };
  while (across > unsigned{kWarp} && 5 * idle() >= columns + idle()) across /= 2;
  const unsigned down = kBlock / across;
  const unsigned blocks = BlocksFor(columns, across);
  return {.blocks = {blocks, BlocksFor(rows, down, std::max<int64_t>(1, 4 * kMostBlocks / blocks))},
          .threads = {across, down}};
}

// Grid-stride loops over rows and columns for launches of RowsShape.
#define LS_FOR_ROWS(row, rows)                                                     \
  for (int64_t row = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < (rows); \
       row += int64_t{gridDim.y} * blockDim.y)
#define LS_FOR_COLUMNS(column, columns)                                                     \
  for (int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; column < (columns); \
       column += int64_t{gridDim.x} * blockDim.x)

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_ROWS_H_
