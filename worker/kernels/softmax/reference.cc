#include "common/math/math.h"
#include "worker/kernels/axis_shapes.h"
#include "worker/kernels/reference/families.h"
#include "worker/kernels/reference/largest.h"

namespace lockstep::device::reference {
namespace {

template <typename T>
void Softmax(const HostCall& call) {
  const AxisExtents e(call.attrs<SoftmaxAttributes>().axis, call.in_shape(0));
  for (int64_t row = 0; row < e.outer * e.inner; ++row) {
    const int64_t base = e.base(row);
    const T* x = call.in<T>(0) + base;
    T* y = call.out<T>(0) + base;
    const double largest = Largest(x, e.extent, e.inner);
    double sum = 0;
    for (int64_t i = 0; i < e.extent; ++i) sum += Exp(static_cast<double>(x[i * e.inner]) - largest);
    for (int64_t i = 0; i < e.extent; ++i) {
      y[i * e.inner] = static_cast<T>(Exp(static_cast<double>(x[i * e.inner]) - largest) / sum);
    }
  }
}

template <typename T>
void SoftmaxGrad(const HostCall& call) {
  const AxisExtents e(call.attrs<SoftmaxAttributes>().axis, call.in_shape(0));
  for (int64_t row = 0; row < e.outer * e.inner; ++row) {
    const int64_t base = e.base(row);
    const T* dy = call.in<T>(0) + base;
    const T* y = call.in<T>(1) + base;
    T* dx = call.out<T>(0) + base;
    double dot = 0;
    for (int64_t i = 0; i < e.extent; ++i) dot += static_cast<double>(dy[i * e.inner]) * y[i * e.inner];
    for (int64_t i = 0; i < e.extent; ++i) dx[i * e.inner] = static_cast<T>(y[i * e.inner] * (dy[i * e.inner] - dot));
  }
}

template <typename T>
void LogSoftmax(const HostCall& call) {
  const AxisExtents e(call.attrs<SoftmaxAttributes>().axis, call.in_shape(0));
  for (int64_t row = 0; row < e.outer * e.inner; ++row) {
    const T* x = call.in<T>(0) + e.base(row);
    T* y = call.out<T>(0) + e.base(row);
    const double largest = Largest(x, e.extent, e.inner);
    double sum = 0;
    for (int64_t i = 0; i < e.extent; ++i) sum += Exp(static_cast<double>(x[i * e.inner]) - largest);
    const double log_sum = largest + Log(sum);
    for (int64_t i = 0; i < e.extent; ++i) y[i * e.inner] = static_cast<T>(x[i * e.inner] - log_sum);
  }
}

template <typename T>
void LogSoftmaxGrad(const HostCall& call) {
  const AxisExtents e(call.attrs<SoftmaxAttributes>().axis, call.in_shape(0));
  for (int64_t row = 0; row < e.outer * e.inner; ++row) {
    const T* dy = call.in<T>(0) + e.base(row);
    const T* y = call.in<T>(1) + e.base(row);
    T* dx = call.out<T>(0) + e.base(row);
    double sum = 0;
    for (int64_t i = 0; i < e.extent; ++i) sum += dy[i * e.inner];
    for (int64_t i = 0; i < e.extent; ++i) {
      dx[i * e.inner] = static_cast<T>(dy[i * e.inner] - Exp(static_cast<double>(y[i * e.inner])) * sum);
    }
  }
}

}  // namespace

template <typename T>
HostFunction SoftmaxFunction(OpType type) {
  switch (type) {
    case OpType::kSoftmax:
      return &Softmax<T>;
    case OpType::kSoftmaxGrad:
      return &SoftmaxGrad<T>;
    case OpType::kLogSoftmax:
      return &LogSoftmax<T>;
    case OpType::kLogSoftmaxGrad:
      return &LogSoftmaxGrad<T>;
    default:
      return nullptr;
  }
}

template HostFunction SoftmaxFunction<float>(OpType);
template HostFunction SoftmaxFunction<double>(OpType);

}  // namespace lockstep::device::reference
