// Row-major matrices and batches of them as factors and results of tile_product.h.
//
// Threading: CUDA's execution model.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_MATRIX_FACTOR_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_MATRIX_FACTOR_H_

#include <cstdint>

#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/fast_divide.h"
#include "worker/kernels/cuda/map.h"

namespace lockstep::device::cuda {

// The offset in elements of each matrix of a batch. The batch dimensions are merged into nested runs, innermost first,
// each with its own stride; 0 where the operand broadcasts.
struct BatchOffsets {
  static constexpr int kMostRuns = 6;

  __device__ int64_t At(int index) const {
    auto rest = static_cast<uint32_t>(index);
    int64_t offset = 0;
    // Unrolled, since run-time indexing would copy the arrays to local memory.
    LS_UNROLL
    for (int r = 0; r < kMostRuns; ++r) {
      if (r < runs) offset += static_cast<int64_t>(extents[r].Split(&rest)) * strides[r];
    }
    return offset;
  }

  FastDivide extents[kMostRuns];
  int64_t strides[kMostRuns] = {};
  int runs = 0;
};

// Loads four adjacent elements, of which the first `count` exist; zeros for the others. `packed`: `from` is aligned to
// 16 bytes.
__device__ inline void LoadFour(const float* from, int count, bool packed, float (&to)[4]) {
  if (packed && count >= 4) {
    const auto four = *reinterpret_cast<const Pack<float, 4>*>(from);
    LS_UNROLL
    for (int i = 0; i < 4; ++i) to[i] = four.values[i];
  } else {
    LS_UNROLL
    for (int i = 0; i < 4; ++i) to[i] = i < count ? from[i] : 0.0f;
  }
}
__device__ inline void StoreFour(float* to, int count, bool packed, const float (&values)[4]) {
  if (packed && count >= 4) {
    *reinterpret_cast<Pack<float, 4>*>(to) = {{values[0], values[1], values[2], values[3]}};
  } else {
    LS_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (i < count) to[i] = values[i];
    }
  }
}

// Whether all rows from `address` on, `pitch` elements apart, are aligned for packed access.
template <typename T>
bool RowsArePackable(const T* address, int64_t pitch) {
  return IsPackable(address) && pitch % kPack == 0;
}

// A factor stored as a matrix: [side, k] with kAlong, else [k, side]; rows are `pitch` elements apart. `extent`: the
// number of indices of the side.
template <bool kAlong>
struct MatrixView {
  static constexpr bool kAlongK = kAlong;
  struct Place {
    const float* data;  // first element of the row (kAlong), or of the column in row 0
    int count;          // side indices from here to the end of the side
  };

  __device__ Place At(int i) const { return {data + (kAlong ? i * pitch : i), extent - i}; }
  __device__ void Load(const Place& place, int k, int k_end, float (&to)[4]) const {
    if constexpr (kAlong) {
      LoadFour(place.data + k, place.count > 0 ? k_end - k : 0, packed, to);
    } else {
      LoadFour(place.data + k * pitch, place.count, packed, to);
    }
  }

  const float* data;
  int64_t pitch;
  int extent;
  bool packed;  // every row is aligned for LoadFour
};

// A batch of matrices as a factor.
template <bool kAlong>
struct MatrixFactor {
  MatrixFactor(const float* data, int64_t pitch, int64_t extent, const BatchOffsets& batch = {})
      : matrix{data, pitch, static_cast<int>(extent), RowsArePackable(data, pitch)}, batch(batch) {
    for (int r = 0; r < batch.runs; ++r) matrix.packed = matrix.packed && batch.strides[r] % kPack == 0;
  }

  __device__ MatrixView<kAlong> Of(int index) const {
    MatrixView<kAlong> view = matrix;
    view.data += batch.At(index);
    return view;
  }

  MatrixView<kAlong> matrix;
  BatchOffsets batch;
};

// Results stored contiguously as [product, m, n]: y = relu?(alpha * product + beta * c).
struct MatrixResult {
  __device__ void Write(int64_t product, int i, int j, const float (&sums)[4]) const {
    if (i >= m || j >= n) return;
    float values[4];
    LS_UNROLL
    for (int q = 0; q < 4; ++q) {
      float value = alpha * sums[q];
      if (c != nullptr && j + q < n) value += beta * c[i * c_row + (j + q) * c_column];
      values[q] = relu && value < 0.0f ? 0.0f : value;
    }
    StoreFour(y + (product * m + i) * n + j, n - j, packed, values);
  }

  float* y;
  const float* c = nullptr;
  int64_t c_row = 0;
  int64_t c_column = 0;
  float alpha = 1;
  float beta = 0;
  int m = 0;
  int n = 0;
  bool relu = false;
  bool packed = false;
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_MATRIX_FACTOR_H_
