#include "worker/kernels/reference/families.h"
#include "worker/kernels/window.h"

namespace lockstep::device::reference {
namespace {

// Calls visit(y_index, x_index, w_index) for every multiplication of a convolution; indices are row-major offsets.
template <typename Visit>
void ForEachProduct(const ConvAttributes& attributes, const Shape& x, const Shape& w, const Shape& y, Visit visit) {
  const Window window(attributes);
  const Spatial x_plane = SpatialOf(x);
  const Spatial y_plane = SpatialOf(y);
  const int64_t x_volume = VolumeOf(x_plane);
  const int64_t y_volume = VolumeOf(y_plane);
  const int64_t w_volume = VolumeOf(window.kernel);
  const int64_t in_per_group = w[1];
  const int64_t out_per_group = w[0] / attributes.group;
  for (int64_t n = 0; n < y[0]; ++n) {
    for (int64_t o = 0; o < y[1]; ++o) {
      const int64_t first = o / out_per_group * in_per_group;
      ForEachPosition(y_plane, [&](int64_t at, const Spatial& position) {
        const int64_t y_index = (n * y[1] + o) * y_volume + at;
        for (int64_t c = 0; c < in_per_group; ++c) {
          const int64_t x_base = (n * x[1] + first + c) * x_volume;
          const int64_t w_base = (o * in_per_group + c) * w_volume;
          window.ForEachInside(x_plane, position,
                               [&](int64_t i, int64_t k) { visit(y_index, x_base + i, w_base + k); });
        }
      });
    }
  }
}

// Sums of products are gathered in the workspace, in double, and rounded once.
template <typename T>
void Round(const double* sums, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(sums[i]);
}

// The workspace, every element of Y set to its channel's bias, or zero.
template <typename T>
double* BeginWithBias(const HostCall& call, const T* bias) {
  const Shape& y = call.out_shape(0);
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t volume = VolumeOf(SpatialOf(y));
  const int64_t count = NumElements(y);
  for (int64_t i = 0; i < count; ++i) sums[i] = bias != nullptr ? bias[i / volume % y[1]] : 0.0;
  return sums;
}

template <typename T>
void Conv(const HostCall& call) {
  const T* x = call.in<T>(0);
  const T* w = call.in<T>(1);
  double* sums = BeginWithBias(call, call.in<T>(2));
  ForEachProduct(call.attrs<ConvAttributes>(), call.in_shape(0), call.in_shape(1), call.out_shape(0),
                 [&](int64_t yi, int64_t xi, int64_t wi) { sums[yi] += static_cast<double>(x[xi]) * w[wi]; });
  Round(sums, call.out<T>(0), NumElements(call.out_shape(0)));
}

// ConvGradInput, and ConvTranspose, which may add a bias.
template <typename T>
void ConvGradInput(const HostCall& call) {
  const T* dy = call.in<T>(0);
  const T* w = call.in<T>(1);
  double* sums = BeginWithBias(call, call.in<T>(2));
  ForEachProduct(call.attrs<ConvAttributes>(), call.out_shape(0), call.in_shape(1), call.in_shape(0),
                 [&](int64_t yi, int64_t xi, int64_t wi) { sums[xi] += static_cast<double>(dy[yi]) * w[wi]; });
  Round(sums, call.out<T>(0), NumElements(call.out_shape(0)));
}

template <typename T>
void ConvGradWeight(const HostCall& call) {
  const T* dy = call.in<T>(0);
  const T* x = call.in<T>(1);
  const Shape& w = call.out_shape(0);
  const Shape& y = call.in_shape(0);
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t count = NumElements(w);
  for (int64_t i = 0; i < count; ++i) sums[i] = 0;
  ForEachProduct(call.attrs<ConvAttributes>(), call.in_shape(1), w, y,
                 [&](int64_t yi, int64_t xi, int64_t wi) { sums[wi] += static_cast<double>(dy[yi]) * x[xi]; });
  Round(sums, call.out<T>(0), count);
  T* db = call.out<T>(1);
  if (db == nullptr) return;
  const int64_t volume = VolumeOf(SpatialOf(y));
  for (int64_t o = 0; o < y[1]; ++o) {
    double sum = 0;
    for (int64_t n = 0; n < y[0]; ++n) {
      for (int64_t i = 0; i < volume; ++i) sum += dy[(n * y[1] + o) * volume + i];
    }
    db[o] = static_cast<T>(sum);
  }
}

}  // namespace

template <typename T>
HostFunction SpatialFunction(OpType type) {
  switch (type) {
    case OpType::kConv:
      return &Conv<T>;
    case OpType::kConvTranspose:
    case OpType::kConvGradInput:
      return &ConvGradInput<T>;
    case OpType::kConvGradWeight:
      return &ConvGradWeight<T>;
    default:
      return nullptr;
  }
}

template HostFunction SpatialFunction<float>(OpType);
template HostFunction SpatialFunction<double>(OpType);

}  // namespace lockstep::device::reference
