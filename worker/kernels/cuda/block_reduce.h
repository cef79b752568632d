// Reductions over a warp and over a block: fold one value per thread into one result, which every thread gets.
//
// Invariants
//   * The tree is fixed: lanes at distance 16, 8, 4, 2, 1, then warps in order. Every thread gets the same bits.
//   * The fold must be commutative; it need not be associative, since the tree is fixed.
//
// Threading: CUDA's execution model: every thread of the warp, or of the block, makes the call.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_BLOCK_REDUCE_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_BLOCK_REDUCE_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "worker/device/cuda/runtime/code.h"

namespace lockstep::device::cuda {

// The value of the lane whose number differs by the xor mask `bits`.
template <typename T>
__device__ T ShuffleXor(T value, int bits) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(uint32_t) == 0);
  using Word = std::conditional_t<sizeof(T) % sizeof(uint64_t) == 0, uint64_t, uint32_t>;
  constexpr int kWords = sizeof(T) / sizeof(Word);
  Word words[kWords];
  std::memcpy(words, &value, sizeof(T));
  LS_UNROLL
  for (int w = 0; w < kWords; ++w) words[w] = __shfl_xor_sync(kFullMask, words[w], bits);
  std::memcpy(&value, words, sizeof(T));
  return value;
}

// fold(a, b) over the values of the warp's lanes.
template <typename T, typename Fold>
__device__ T WarpFold(T value, Fold fold) {
  LS_UNROLL
  for (int bits = kWarp / 2; bits > 0; bits /= 2) value = fold(value, ShuffleXor(value, bits));
  return value;
}

// The same over a block of kThreads threads, a multiple of a warp, all in x.
template <int kThreads, typename T, typename Fold>
__device__ T BlockFold(T value, Fold fold) {
  static_assert(kThreads % kWarp == 0);
  constexpr int kWarps = kThreads / kWarp;
  value = WarpFold(value, fold);
  if constexpr (kWarps > 1) {
    // Declared as words, since __shared__ variables must not have constructors.
    __shared__ uint64_t words[(kWarps * sizeof(T) + 7) / 8];
    T* of_warp = reinterpret_cast<T*>(words);
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = of_warp[0];
    LS_UNROLL
    for (int w = 1; w < kWarps; ++w) value = fold(value, of_warp[w]);
    // No thread writes the values of the next fold before all have read these.
    __syncthreads();
  }
  return value;
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_BLOCK_REDUCE_H_
