// Element-wise kernels over operands of equal shape.
//
// A formula is a trivially copyable struct with an LS_HD call operator; the host constructs it from the DeviceCall,
// whose attributes it may read.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_MAP_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_MAP_H_

#include <cstdint>

#include "common/tensor/shape.h"
#include "worker/device/cuda/runtime/launch.h"
#include "worker/kernels/cuda/own_kernels.h"

namespace lockstep::device::cuda {

// Elements that a thread loads or stores at once.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T values[kCount];
};

inline constexpr int kPack = 4;

template <typename T>
bool IsPackable(const T* address) {
  return reinterpret_cast<uintptr_t>(address) % (sizeof(T) * kPack) == 0;
}

// y = formula(x...) over `count` elements, kPack at a time and the remainder singly. REQUIRES: every address
// IsPackable.
template <typename Result, typename Formula, typename... T>
__global__ void MapPacksKernel(int64_t count, Formula formula, Result* y, const T*... x) {
  const int64_t packs = count / kPack;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (int64_t p = first; p < packs; p += stride) {
    const auto apply = [&](const Pack<T, kPack>&... in) {
      Pack<Result, kPack> out;
      LS_UNROLL
      for (int i = 0; i < kPack; ++i) out.values[i] = formula(in.values[i]...);
      return out;
    };
    reinterpret_cast<Pack<Result, kPack>*>(y)[p] = apply(reinterpret_cast<const Pack<T, kPack>*>(x)[p]...);
  }
  for (int64_t i = packs * kPack + first; i < count; i += stride) y[i] = formula(x[i]...);
}

template <typename Result, typename Formula, typename... T>
__global__ void MapKernel(int64_t count, Formula formula, Result* y, const T*... x) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) y[i] = formula(x[i]...);
}

// Queues y[i] = formula(x[i]...) for every i in [0, count). An operand may be the same memory as y.
template <typename Result, typename Formula, typename... T>
absl::Status Map(StreamHandle stream, int64_t count, Formula formula, Result* y, const T*... x) {
  if (count == 0) return absl::OkStatus();
  const LaunchShape shape{.blocks = {BlocksFor(count, kBlock * kPack)}, .threads = {kBlock}};
  if (IsPackable(y) && (IsPackable(x) && ...)) {
    return Launch(stream, shape, &MapPacksKernel<Result, Formula, T...>, count, formula, y, x...);
  }
  return Launch(stream, shape, &MapKernel<Result, Formula, T...>, count, formula, y, x...);
}

// LaunchFunctions that compute output 0 by Formula(call) from input 0, or from inputs 0 and 1 of the same shape.
template <typename T, typename Formula>
absl::Status MapOne(const DeviceCall& call, StreamHandle stream) {
  return Map(stream, NumElements(call.out_shape(0)), Formula(call), call.out<T>(0), call.in<T>(0));
}
template <typename T, typename Formula>
absl::Status MapTwo(const DeviceCall& call, StreamHandle stream) {
  return Map(stream, NumElements(call.out_shape(0)), Formula(call), call.out<T>(0), call.in<T>(0), call.in<T>(1));
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_MAP_H_
