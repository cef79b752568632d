// The subset of CUDA in which kernels are written. A kernel file includes this first and is compiled twice: by nvcc for
// GPUs, and by the host's compiler for host execution, which defines CUDA's keywords (host_execution.h). Both accept:
//
//   __global__, __device__, __shared__ (sizes known when compiled), threadIdx, blockIdx, blockDim, gridDim,
//   __syncthreads(), __syncwarp(), __shfl_xor_sync, __shfl_down_sync and __shfl_sync with a full mask, fmaf, fma;
//   StoreSame(to, value) for a store that several threads of a launch make to one place, all of the same value;
//   DynamicShared<T>() for shared memory whose size is given at the launch;
//   LS_KERNEL_LAMBDA for a lambda that kernels call (not inside another lambda); LS_UNROLL in front of a loop that is
//   unrolled in full, LS_UNROLL_4 in front of one whose loads four iterations may have under way together;
//   LS_HD for functions of common/math and the like.
//
// There are no atomics, whose order would not repeat, and no libm: `common/math` has the functions with the same bits
// everywhere. Products and sums are not contracted; write fmaf where a fused operation is meant.
//
// Threading: CUDA's execution model.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_CODE_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_CODE_H_

#include "common/math/host_device.h"

#ifdef __CUDACC__

#define LS_KERNEL_LAMBDA [=] __device__
#define LS_UNROLL _Pragma("unroll")
#define LS_UNROLL_4 _Pragma("unroll 4")

namespace lockstep::device::cuda {

// The block's dynamic shared memory, aligned to 16 bytes.
template <typename T>
__device__ T* DynamicShared() {
  extern __shared__ __align__(16) unsigned char dynamic_shared[];
  return reinterpret_cast<T*>(dynamic_shared);
}

// Volatile, since concurrent plain stores to one address are undefined in CUDA's memory model.
template <typename T>
__device__ void StoreSame(T* to, T value) {
  *const_cast<volatile T*>(to) = value;
}

}  // namespace lockstep::device::cuda

#else

#include "worker/device/cuda/runtime/host_execution.h"

#define LS_KERNEL_LAMBDA [=]
#define LS_UNROLL
#define LS_UNROLL_4

#endif

namespace lockstep::device::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kFullMask = 0xffffffffu;

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_CODE_H_
