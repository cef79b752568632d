// Row-major matrices in memory as factors and results of tile_product.h, and how those of a batch follow each other.
//
// Threading: as of kernels.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_MATRIX_FACTOR_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_MATRIX_FACTOR_H_

#include <cstdint>

#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/fast_divide.h"
#include "worker/kernels/cuda/map.h"

namespace lockstep::device::cuda {

// Where matrix `index` of a batch begins, in elements: nested runs, the innermost first, each with a distance of its
// own; 0 where the operand broadcasts.
struct BatchOffsets {
  static constexpr int kMostRuns = 6;

  __device__ int64_t At(int index) const {
    auto rest = static_cast<uint32_t>(index);
    int64_t offset = 0;
    // Unrolled, so that nothing is indexed at run time, which would put a copy into local memory.
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

// Four elements that lie side by side at `from`, of which `count` are there; zeros for the others. `packed`: `from` is
// aligned to them.
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

// Whether rows `pitch` apart that begin at `address` allow packed access.
template <typename T>
bool RowsArePackable(const T* address, int64_t pitch) {
  return IsPackable(address) && pitch % kPack == 0;
}

// A matrix whose side has `extent` indices. kAlong: stored [side, k]; else [k, side]; rows are `pitch` apart.
template <bool kAlong>
struct MatrixView {
  static constexpr bool kAlongK = kAlong;
  struct Place {
    const float* data;  // of the row, or the column of the first row
    int count;          // of the four, or of the one, that are there
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
  bool packed;  // every row allows it
};

// The matrices of a batch.
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

// Results that lie behind each other: y = relu?(alpha * product + beta * c).
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
