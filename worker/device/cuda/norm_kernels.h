// The kernels behind the updates of norm_formulas.h, with the sums in the order that stands there. Blocks of threads
// take chunks of a parameter's elements, or tiles of its rows or columns; what chunks sum up is put together by one
// thread per parameter.
//
// Threading: as kernels.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_NORM_KERNELS_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_NORM_KERNELS_H_

#include <cstdint>

#include "worker/arithmetic/norm_formulas.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/device/cuda/step_kernels.h"
#include "worker/kernels/cuda/block_reduce.h"

namespace lockstep::device::cuda {

static_assert(kChunk == kNormBlock && kStepThreads == kNormLanes && kWarp == kNormWarp);

// One parameter. Matrices and their rows and columns are counted through all of it.
struct NormTensor {
  int64_t size;
  TrailingMatrix shape;
  float* value;
  const float* gradient;
  float* slots[2];
  float* average;
  float* row_means;     // of matrices: the mean of each one's rows
  double* column_sums;  // of matrices with more than kNormRows rows: those of a block of rows after another
  int32_t first_chunk;
  int32_t last_chunk;
  bool decays;

  LS_HD int64_t columns() const { return size / shape.rows; }
};

// A part of one parameter.
struct NormChunk {
  int64_t begin;
  int32_t size;
  int32_t tensor;
};

// So many rows, or matrices, of one parameter.
struct RowTile {
  int64_t first;
  int32_t count;
  int32_t tensor;
};
inline constexpr int64_t kTileRows = 64;

// A block of rows of kStepThreads columns.
struct ColumnTile {
  int64_t first;
  int32_t block;
  int32_t tensor;
};

LS_HD inline UpdateScalars ScalarsOf(const UpdateScalars& scalars, const float* clip, const NormTensor& tensor) {
  UpdateScalars s = tensor.decays ? scalars : WithoutDecay(scalars);
  if (clip != nullptr) s.clip = *clip;
  return s;
}

// --- the two phases ---

// Moves the slots; found[2 * chunk] and the next: the chunk's sums of squares.
template <typename Formula>
__global__ void NormSquaresKernel(const NormTensor* tensors, const NormChunk* chunks, UpdateScalars scalars,
                                  const float* clip, double* found) {
  const NormChunk chunk = chunks[blockIdx.x];
  const NormTensor tensor = tensors[chunk.tensor];
  const UpdateScalars s = ScalarsOf(scalars, clip, tensor);
  NormSquares sums;
  ForChunk(chunk.size, [&](int32_t i) {
    const int64_t at = chunk.begin + i;
    Formula::Move(s, tensor, at);
    sums.value += SquareOf(tensor.value[at]);
    sums.direction += SquareOf(Formula::Direction(s, tensor, at));
  });
  sums.value = BlockFold<kStepThreads>(sums.value, Sum());
  sums.direction = BlockFold<kStepThreads>(sums.direction, Sum());
  if (threadIdx.x == 0) {
    found[2 * blockIdx.x] = sums.value;
    found[2 * blockIdx.x + 1] = sums.direction;
  }
}

// One thread per tensor.
template <typename Formula>
__global__ void NormScaleKernel(const NormTensor* tensors, int64_t count, UpdateScalars scalars, const double* found,
                                float* scales) {
  const int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= count) return;
  const NormTensor tensor = tensors[t];
  NormSquares sums;
  for (int32_t c = tensor.first_chunk; c < tensor.last_chunk; ++c) {
    sums.value += found[2 * int64_t{c}];
    sums.direction += found[2 * int64_t{c} + 1];
  }
  scales[t] = Formula::Scale(ScalarsOf(scalars, nullptr, tensor), tensor, sums);
}

template <typename Formula>
__global__ void NormStepKernel(const NormTensor* tensors, const NormChunk* chunks, UpdateScalars scalars,
                               const float* clip, const float* scales) {
  const NormChunk chunk = chunks[blockIdx.x];
  const NormTensor tensor = tensors[chunk.tensor];
  const UpdateScalars s = ScalarsOf(scalars, clip, tensor);
  const float rate = s.lr * scales[chunk.tensor];
  ForChunk(chunk.size, [&](int32_t i) {
    const int64_t at = chunk.begin + i;
    const float moved = SteppedValue(s, rate, tensor.value[at], Formula::Direction(s, tensor, at));
    tensor.value[at] = moved;
    if (tensor.average == nullptr) return;
    tensor.average[at] = s.copies_average ? moved : MovedAverage(s, tensor.average[at], moved);
  });
}

struct LambFormula {
  static LS_HD void Move(const UpdateScalars& s, const NormTensor& tensor, int64_t at) {
    MoveLambMeans(s, tensor.gradient[at], tensor.slots[0][at], tensor.slots[1][at]);
  }
  static LS_HD float Direction(const UpdateScalars& s, const NormTensor& tensor, int64_t at) {
    return LambDirection(s, tensor.value[at], tensor.slots[0][at], tensor.slots[1][at]);
  }
  static LS_HD float Scale(const UpdateScalars& s, const NormTensor&, const NormSquares& sums) {
    return LambScale(s, sums);
  }
};

struct AdafactorFormula {
  static LS_HD void Move(const UpdateScalars& s, const NormTensor& tensor, int64_t at) {
    if (tensor.shape.columns > 0) return;
    float& square = tensor.slots[0][at];
    square = MovedSquare(s, square, SquareOf(MeanGradient(s, tensor.gradient[at])));
  }
  static LS_HD float Direction(const UpdateScalars& s, const NormTensor& tensor, int64_t at) {
    return AdafactorDirection(s, tensor.gradient[at], Square(s, tensor, at));
  }
  static LS_HD float Scale(const UpdateScalars& s, const NormTensor& tensor, const NormSquares& sums) {
    return AdafactorScale(s, sums, tensor.size);
  }

 private:
  static LS_HD float Square(const UpdateScalars& s, const NormTensor& tensor, int64_t at) {
    const TrailingMatrix& shape = tensor.shape;
    if (shape.columns == 0) return tensor.slots[0][at];
    const int64_t row = at / shape.columns;
    const int64_t matrix = row / shape.rows;
    const int64_t column = matrix * shape.columns + (at - row * shape.columns);
    return RowShare(s, tensor.slots[0][row], tensor.row_means[matrix]) * tensor.slots[1][column];
  }
};

// --- means of rows and columns, for adafactor ---

// value(i) summed over [0, count), by the lanes of a warp.
template <typename Value>
__device__ double WarpSum(int64_t count, Value value) {
  double sum = 0;
  for (int64_t i = threadIdx.x % kWarp; i < count; i += kWarp) sum += value(i);
  return WarpFold(sum, Sum());
}

// Calls f(row) for the rows of a tile, a warp each.
template <typename F>
__device__ void ForTile(const RowTile& tile, F f) {
  for (int32_t r = static_cast<int32_t>(threadIdx.x) / kWarp; r < tile.count; r += kStepThreads / kWarp) {
    f(tile.first + r);
  }
}

inline __global__ void MoveRowsKernel(const NormTensor* tensors, const RowTile* tiles, UpdateScalars scalars,
                                      const float* clip) {
  const RowTile tile = tiles[blockIdx.x];
  const NormTensor tensor = tensors[tile.tensor];
  const UpdateScalars s = ScalarsOf(scalars, clip, tensor);
  const int64_t columns = tensor.shape.columns;
  ForTile(tile, [&](int64_t row) {
    const double sum =
        WarpSum(columns, [&](int64_t c) { return SquareOf(MeanGradient(s, tensor.gradient[row * columns + c])); });
    if (threadIdx.x % kWarp != 0) return;
    tensor.slots[0][row] = MovedSquare(s, tensor.slots[0][row], sum / static_cast<double>(columns));
  });
}

// The mean of the moved rows of every matrix. Tiles are of matrices.
inline __global__ void RowMeansKernel(const NormTensor* tensors, const RowTile* tiles) {
  const RowTile tile = tiles[blockIdx.x];
  const NormTensor tensor = tensors[tile.tensor];
  const int64_t rows = tensor.shape.rows;
  ForTile(tile, [&](int64_t matrix) {
    const double sum = WarpSum(rows, [&](int64_t r) { return double{tensor.slots[0][matrix * rows + r]}; });
    if (threadIdx.x % kWarp == 0) tensor.row_means[matrix] = static_cast<float>(sum / static_cast<double>(rows));
  });
}

LS_HD inline void MoveColumn(const UpdateScalars& s, const NormTensor& tensor, int64_t column, double sum) {
  float& kept = tensor.slots[1][column];
  kept = MovedSquare(s, kept, sum / static_cast<double>(tensor.shape.rows));
}

// One thread per column and block of rows. Where that is all of the column, it moves; else its sum is stored.
inline __global__ void ColumnsKernel(const NormTensor* tensors, const ColumnTile* tiles, UpdateScalars scalars,
                                     const float* clip) {
  const ColumnTile tile = tiles[blockIdx.x];
  const NormTensor tensor = tensors[tile.tensor];
  const int64_t column = tile.first + threadIdx.x;
  if (column >= tensor.columns()) return;
  const UpdateScalars s = ScalarsOf(scalars, clip, tensor);
  const TrailingMatrix& shape = tensor.shape;
  const int64_t matrix = column / shape.columns;
  const float* const gradients =
      tensor.gradient + matrix * shape.rows * shape.columns + (column - matrix * shape.columns);
  const int64_t first = tile.block * kNormRows;
  const int64_t last = first + kNormRows < shape.rows ? first + kNormRows : shape.rows;
  double sum = 0;
  for (int64_t r = first; r < last; ++r) sum += SquareOf(MeanGradient(s, gradients[r * shape.columns]));
  if (tensor.column_sums == nullptr) {
    MoveColumn(s, tensor, column, sum);
  } else {
    tensor.column_sums[tile.block * tensor.columns() + column] = sum;
  }
}

// One thread per column of which ColumnsKernel stored sums.
inline __global__ void MoveColumnsKernel(const NormTensor* tensors, const ColumnTile* tiles, UpdateScalars scalars) {
  const ColumnTile tile = tiles[blockIdx.x];
  const NormTensor tensor = tensors[tile.tensor];
  const int64_t column = tile.first + threadIdx.x;
  if (column >= tensor.columns()) return;
  double sum = 0;
  for (int64_t block = 0; block * kNormRows < tensor.shape.rows; ++block) {
    sum += tensor.column_sums[block * tensor.columns() + column];
  }
  MoveColumn(scalars, tensor, column, sum);
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_NORM_KERNELS_H_
