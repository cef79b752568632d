// Matrix products by blocks of 256 threads: tiles of both factors are staged in shared memory. Each thread keeps 4 x 4
// results of a 64 x 64 tile, or 8 x 8 of a 128 x 128 tile, in registers. The factors and results define how elements
// are addressed, so that matrices, windows of images and heads of attention share this code.
//
// Every result is one chain of fmaf over k, in order, whatever the tile; or, if split, the sum of such chains in order
// (tile_launch.h). So the bits depend on shapes alone.
//
// A factor has two indices: k, over which the product sums, and i, the index of its side (row of a, column of b). It is
// a trivially copyable struct:
//   static constexpr bool kAlongK      true: elements are adjacent in memory along k; false: along the side
//   Place At(i)                        precomputes the addressing of index i, or of i to i + 3 if !kAlongK
//   Load(place, k, k_end, to)          loads (i, k) to (i, k + 3), zeros from k_end on; or (i, k) to (i + 3, k)
// The operand of a launch has Of(batch), which returns the factor of one product. A result has Write(batch, i, j,
// values) for (i, j) to (i, j + 3). Both must accept indices outside of the matrices.
//
// Threading: CUDA's execution model.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_TILE_PRODUCT_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_TILE_PRODUCT_H_

#include <cstdint>

#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/map.h"

namespace lockstep::device::cuda {

inline constexpr int kTileThreads = 256;

template <int kSide>
struct TileShape {
  static_assert(kSide == 64 || kSide == 128);
  // Steps of k that are staged at once: four elements of each factor per thread.
  static constexpr int kDepth = 4 * kTileThreads / kSide;
  // The distance of rows in shared memory, padded so that writes of columns do not conflict in banks.
  static constexpr int kPitch = kSide + 4;
  // Results of a thread per dimension: kSide / 64 groups of four adjacent rows or columns, 64 apart.
  static constexpr int kPerThread = kSide / 16;
};

// The staged steps of both factors, double-buffered.
template <int kSide>
struct alignas(16) TileMemory {
  using Steps = float[TileShape<kSide>::kDepth][TileShape<kSide>::kPitch];
  Steps a[2];
  Steps b[2];
};

// A thread's results.
template <int kSide>
struct TileSums {
  float values[TileShape<kSide>::kPerThread][TileShape<kSide>::kPerThread] = {};

  static __device__ int Row(int r) { return r / 4 * 64 + static_cast<int>(threadIdx.x) / 16 * 4 + r % 4; }
  static __device__ int Column(int c) { return c / 4 * 64 + static_cast<int>(threadIdx.x) % 16 * 4 + c % 4; }
};

// Copies one thread's part of a factor to shared memory.
template <int kSide, typename Factor>
class TileLoader {
 public:
  __device__ TileLoader(const Factor& factor, int first) : factor_(factor), place_(factor.At(first + Side())) {}

  __device__ void Fetch(int k, int k_end) {
    k += Step();
    if (Factor::kAlongK || k < k_end) {
      factor_.Load(place_, k, k_end, values_);
    } else {
      LS_UNROLL
      for (int i = 0; i < 4; ++i) values_[i] = 0;
    }
  }

  __device__ void Store(typename TileMemory<kSide>::Steps& to) const {
    if constexpr (Factor::kAlongK) {
      LS_UNROLL
      for (int i = 0; i < 4; ++i) to[Step() + i][Side()] = values_[i];
    } else {
      LS_UNROLL
      for (int i = 0; i < 4; ++i) to[Step()][Side() + i] = values_[i];
    }
  }

 private:
  static constexpr int kPerLine = (Factor::kAlongK ? TileShape<kSide>::kDepth : kSide) / 4;
  static __device__ int Line() { return static_cast<int>(threadIdx.x) / kPerLine; }
  static __device__ int Along() { return static_cast<int>(threadIdx.x) % kPerLine * 4; }
  static __device__ int Side() { return Factor::kAlongK ? Line() : Along(); }
  static __device__ int Step() { return Factor::kAlongK ? Along() : Line(); }

  const Factor& factor_;
  const typename Factor::Place place_;
  float values_[4];
};

// sums += transposed steps of a times steps of b. REQUIRES: rows begin at multiples of 16 bytes.
template <int kSide, int kDepth, int kPitchA, int kPitchB>
__device__ void MultiplySteps(const float (&a)[kDepth][kPitchA], const float (&b)[kDepth][kPitchB],
                              TileSums<kSide>& sums) {
  using Four = Pack<float, 4>;
  constexpr int kQuads = kSide / 64;
  LS_UNROLL
  for (int k = 0; k < kDepth; ++k) {
    Four left[kQuads], right[kQuads];
    LS_UNROLL
    for (int q = 0; q < kQuads; ++q) {
      left[q] = *reinterpret_cast<const Four*>(&a[k][TileSums<kSide>::Row(4 * q)]);
      right[q] = *reinterpret_cast<const Four*>(&b[k][TileSums<kSide>::Column(4 * q)]);
    }
    LS_UNROLL
    for (int r = 0; r < 4 * kQuads; ++r) {
      LS_UNROLL
      for (int c = 0; c < 4 * kQuads; ++c) {
        float& sum = sums.values[r][c];
        sum = fmaf(left[r / 4].values[r % 4], right[c / 4].values[c % 4], sum);
      }
    }
  }
}

// sums += the tile at (row, column) of a b, summed over [k, k_end). All threads of the block call it; `memory` may be
// overwritten when it returns.
template <int kSide, typename A, typename B>
__device__ void MultiplyTiles(TileMemory<kSide>& memory, const A& a, int row, const B& b, int column, int k, int k_end,
                              TileSums<kSide>& sums) {
  constexpr int kDepth = TileShape<kSide>::kDepth;
  TileLoader<kSide, A> left(a, row);
  TileLoader<kSide, B> right(b, column);
  left.Fetch(k, k_end);
  right.Fetch(k, k_end);
  left.Store(memory.a[0]);
  right.Store(memory.b[0]);
  __syncthreads();
  for (int at = 0; k < k_end; k += kDepth, at ^= 1) {
    const bool more = k + kDepth < k_end;
    if (more) {
      left.Fetch(k + kDepth, k_end);
      right.Fetch(k + kDepth, k_end);
    }
    MultiplySteps<kSide>(memory.a[at], memory.b[at], sums);
    if (more) {
      left.Store(memory.a[at ^ 1]);
      right.Store(memory.b[at ^ 1]);
    }
    __syncthreads();
  }
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_TILE_PRODUCT_H_
