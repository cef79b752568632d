// Loops of element-wise CPU kernels over operands of equal shape. The output may be the same memory as an input, since
// element i of the inputs is read before element i of the output is written; `ivdep` tells the compiler that it may
// vectorise nevertheless.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_OWN_LOOPS_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_OWN_LOOPS_H_

#include <cstdint>

#include "worker/device/host_kernel.h"
#include "worker/kernels/cpu/parallel.h"

namespace lockstep::device::cpu::LS_CODE {

// The fewest elements for which another thread is worth its start.
inline constexpr int64_t kGrain = 16384;

// y[i] = op(x[i])
template <typename Op>
void Unary(const HostCall& call, Op op) {
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  ParallelFor(call.out_elements(), kGrain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) y[i] = op(x[i]);
  });
}

// y[i] = op(a[i], b[i])
template <typename Op>
void Same(const HostCall& call, Op op) {
  const float* a = call.in<float>(0);
  const float* b = call.in<float>(1);
  float* y = call.out<float>(0);
  ParallelFor(call.out_elements(), kGrain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) y[i] = op(a[i], b[i]);
  });
}

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_OWN_LOOPS_H_
