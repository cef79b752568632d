#include "worker/device/reduce_shapes.h"
#include "worker/device/reference/families.h"

namespace lockstep::device::reference {
namespace {

// ReduceSum and ReduceMean: every element is added where its kept coordinates point; the sums lie in the workspace.
template <typename T>
void Reduce(const HostCall& call) {
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  const Shape& shape = call.in_shape(0);
  const Shape kept = KeptShape(call.attrs<ReduceAttributes>(), shape);
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t results = NumElements(kept);
  const int64_t count = NumElements(shape);
  for (int64_t i = 0; i < results; ++i) sums[i] = 0;
  for (int64_t i = 0; i < count; ++i) sums[BroadcastIndex(i, shape, kept)] += x[i];
  const double divisor = call.op == OpType::kReduceMean && results > 0 ? static_cast<double>(count / results) : 1.0;
  for (int64_t i = 0; i < results; ++i) y[i] = static_cast<T>(sums[i] / divisor);
}

template <typename T>
void MaskedSum(const HostCall& call) {
  const T* values = call.in<T>(0);
  const T* mask = call.in<T>(1);
  const int64_t rows = call.in_shape(1)[0];
  const int64_t width = rows > 0 ? NumElements(call.in_shape(0)) / rows : 0;
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (mask[row] == T(0)) continue;
    for (int64_t i = 0; i < width; ++i) sum += values[row * width + i];
  }
  call.out<T>(0)[0] = static_cast<T>(sum);
}

}  // namespace

template <typename T>
HostFunction ReduceFunction(OpType type) {
  switch (type) {
    case OpType::kReduceSum:
    case OpType::kReduceMean:
      return &Reduce<T>;
    case OpType::kMaskedSum:
      return &MaskedSum<T>;
    default:
      return nullptr;
  }
}

template HostFunction ReduceFunction<float>(OpType);
template HostFunction ReduceFunction<double>(OpType);

}  // namespace lockstep::device::reference
