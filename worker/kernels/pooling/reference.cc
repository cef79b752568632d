#include <limits>

#include "worker/kernels/reference/families.h"
#include "worker/kernels/window.h"

namespace lockstep::device::reference {
namespace {

// The planes of X and Y side by side.
struct Planes {
  Planes(const Shape& x_shape, const Shape& y_shape)
      : count(x_shape[0] * x_shape[1]),
        x(SpatialOf(x_shape)),
        y(SpatialOf(y_shape)),
        x_volume(VolumeOf(x)),
        y_volume(VolumeOf(y)) {}
  int64_t count;
  Spatial x;
  Spatial y;
  int64_t x_volume;
  int64_t y_volume;
};

// What a window of padding alone, which dilation can make, gives.
template <typename T>
T Lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

// MaxPool and MaxPoolWithArgmax. A NaN wins over everything before it, and nothing after it.
template <typename T>
void MaxPool(const HostCall& call) {
  const Window window(call.attrs<PoolAttributes>());
  const Planes planes(call.in_shape(0), call.out_shape(0));
  int32_t* argmax = call.out<int32_t>(1);
  for (int64_t plane = 0; plane < planes.count; ++plane) {
    const T* x = call.in<T>(0) + plane * planes.x_volume;
    ForEachPosition(planes.y, [&](int64_t at, const Spatial& position) {
      int64_t best = -1;
      window.ForEachInside(planes.x, position, [&](int64_t i, int64_t) {
        const bool first_nan = x[i] != x[i] && (best < 0 || x[best] == x[best]);
        if (best < 0 || x[i] > x[best] || first_nan) best = i;
      });
      const int64_t to = plane * planes.y_volume + at;
      call.out<T>(0)[to] = best < 0 ? Lowest<T>() : x[best];
      if (argmax != nullptr) argmax[to] = static_cast<int32_t>(best);
    });
  }
}

template <typename T>
void Round(const double* sums, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(sums[i]);
}

double* Zeros(const HostCall& call) {
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) sums[i] = 0;
  return sums;
}

template <typename T>
void MaxPoolGrad(const HostCall& call) {
  const T* dy = call.in<T>(0);
  const int32_t* argmax = call.in<int32_t>(1);
  const Planes planes(call.out_shape(0), call.in_shape(0));
  double* sums = Zeros(call);
  for (int64_t i = 0; i < planes.count * planes.y_volume; ++i) {
    if (argmax[i] >= 0) sums[i / planes.y_volume * planes.x_volume + argmax[i]] += dy[i];
  }
  Round(sums, call.out<T>(0), planes.count * planes.x_volume);
}

template <typename T>
void AveragePool(const HostCall& call) {
  const auto& attributes = call.attrs<PoolAttributes>();
  const Window window(attributes);
  const Planes planes(call.in_shape(0), call.out_shape(0));
  for (int64_t plane = 0; plane < planes.count; ++plane) {
    const T* x = call.in<T>(0) + plane * planes.x_volume;
    ForEachPosition(planes.y, [&](int64_t at, const Spatial& position) {
      double sum = 0;
      window.ForEachInside(planes.x, position, [&](int64_t i, int64_t) { sum += x[i]; });
      const int64_t count = window.Count(planes.x, position, attributes.count_include_pad);
      call.out<T>(0)[plane * planes.y_volume + at] =
          count == 0 ? T(0) : static_cast<T>(sum / static_cast<double>(count));
    });
  }
}

template <typename T>
void AveragePoolGrad(const HostCall& call) {
  const auto& attributes = call.attrs<PoolAttributes>();
  const Window window(attributes);
  const Planes planes(call.out_shape(0), call.in_shape(0));
  double* sums = Zeros(call);
  for (int64_t plane = 0; plane < planes.count; ++plane) {
    double* dx = sums + plane * planes.x_volume;
    ForEachPosition(planes.y, [&](int64_t at, const Spatial& position) {
      const auto count = static_cast<double>(window.Count(planes.x, position, attributes.count_include_pad));
      const double share = call.in<T>(0)[plane * planes.y_volume + at] / count;
      window.ForEachInside(planes.x, position, [&](int64_t i, int64_t) { dx[i] += share; });
    });
  }
  Round(sums, call.out<T>(0), planes.count * planes.x_volume);
}

template <typename T>
void GlobalAverage(const HostCall& call) {
  const Planes planes(call.in_shape(0), call.out_shape(0));
  for (int64_t plane = 0; plane < planes.count; ++plane) {
    double sum = 0;
    for (int64_t i = 0; i < planes.x_volume; ++i) sum += call.in<T>(0)[plane * planes.x_volume + i];
    call.out<T>(0)[plane] = static_cast<T>(sum / static_cast<double>(planes.x_volume));
  }
}

template <typename T>
void GlobalMax(const HostCall& call) {
  const Planes planes(call.in_shape(0), call.out_shape(0));
  for (int64_t plane = 0; plane < planes.count; ++plane) {
    T best = Lowest<T>();
    for (int64_t i = 0; i < planes.x_volume; ++i) {
      const T value = call.in<T>(0)[plane * planes.x_volume + i];
      if (value > best || value != value) best = value;
    }
    call.out<T>(0)[plane] = best;
  }
}

}  // namespace

template <typename T>
HostFunction PoolingFunction(OpType type) {
  switch (type) {
    case OpType::kMaxPool:
    case OpType::kMaxPoolWithArgmax:
      return &MaxPool<T>;
    case OpType::kMaxPoolGrad:
      return &MaxPoolGrad<T>;
    case OpType::kAveragePool:
      return &AveragePool<T>;
    case OpType::kAveragePoolGrad:
      return &AveragePoolGrad<T>;
    case OpType::kGlobalAveragePool:
      return &GlobalAverage<T>;
    case OpType::kGlobalMaxPool:
      return &GlobalMax<T>;
    default:
      return nullptr;
  }
}

template <typename T>
HostFunction IntegerPoolingFunction(OpType type) {
  return type == OpType::kMaxPool ? &MaxPool<T> : nullptr;
}

template HostFunction PoolingFunction<float>(OpType);
template HostFunction PoolingFunction<double>(OpType);
template HostFunction IntegerPoolingFunction<int64_t>(OpType);
template HostFunction IntegerPoolingFunction<int32_t>(OpType);
template HostFunction IntegerPoolingFunction<int8_t>(OpType);
template HostFunction IntegerPoolingFunction<uint8_t>(OpType);

}  // namespace lockstep::device::reference
