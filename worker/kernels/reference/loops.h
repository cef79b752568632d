// The loops of element-wise reference kernels, over the elements of the first output in row-major order.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_REFERENCE_LOOPS_H_
#define LOCKSTEP_WORKER_KERNELS_REFERENCE_LOOPS_H_

#include <cstdint>

#include "worker/device/host_kernel.h"
#include "worker/kernels/broadcast.h"

namespace lockstep::device::reference {

// The element of input i that broadcasts to element `index` of the first output.
template <typename T>
T BroadcastAt(const HostCall& call, size_t i, int64_t index) {
  return call.in<T>(i)[BroadcastIndex(index, call.out_shape(0), call.in_shape(i))];
}

// Y = op(X).
template <typename T, typename Result = T, typename Op>
void Unary(const HostCall& call, Op op) {
  const T* x = call.in<T>(0);
  Result* y = call.out<Result>(0);
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) y[i] = op(x[i]);
}

// Y = op(A, B) with broadcasting.
template <typename T, typename Result = T, typename Op>
void Binary(const HostCall& call, Op op) {
  Result* y = call.out<Result>(0);
  const int64_t count = NumElements(call.out_shape(0));
  const T* a = call.in<T>(0);
  const T* b = call.in<T>(1);
  BroadcastCursor of_a(call.out_shape(0), call.in_shape(0)), of_b(call.out_shape(0), call.in_shape(1));
  for (int64_t i = 0; i < count; ++i, of_a.Next(), of_b.Next()) y[i] = op(a[of_a.index()], b[of_b.index()]);
}

// dX = op(dY, V), where V is X or Y; all have the same shape.
template <typename T, typename Op>
void Gradient(const HostCall& call, Op op) {
  const T* dy = call.in<T>(0);
  const T* value = call.in<T>(1);
  T* dx = call.out<T>(0);
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) dx[i] = op(dy[i], value[i]);
}

}  // namespace lockstep::device::reference

#endif  // LOCKSTEP_WORKER_KERNELS_REFERENCE_LOOPS_H_
