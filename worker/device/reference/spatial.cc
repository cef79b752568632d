#include <limits>

#include "worker/device/reference/families.h"
#include "worker/device/window.h"

namespace lockstep::device::reference {
namespace {

// Calls visit(y_index, x_index, w_index) for every multiplication of a convolution; indices are row-major offsets.
template <typename Visit>
void ForEachProduct(const ConvAttributes& attributes, const Shape& x, const Shape& w, const Shape& y, Visit visit) {
  const Window window(attributes);
  const int64_t in_per_group = w[1];
  const int64_t out_per_group = w[0] / attributes.group;
  for (int64_t n = 0; n < y[0]; ++n) {
    for (int64_t o = 0; o < y[1]; ++o) {
      const int64_t first = o / out_per_group * in_per_group;
      for (int64_t oh = 0; oh < y[2]; ++oh) {
        for (int64_t ow = 0; ow < y[3]; ++ow) {
          const int64_t y_index = ((n * y[1] + o) * y[2] + oh) * y[3] + ow;
          for (int64_t c = 0; c < in_per_group; ++c) {
            for (int64_t kh = 0; kh < w[2]; ++kh) {
              for (int64_t kw = 0; kw < w[3]; ++kw) {
                const int64_t ih = window.row(oh, kh);
                const int64_t iw = window.column(ow, kw);
                if (ih < 0 || ih >= x[2] || iw < 0 || iw >= x[3]) continue;
                visit(y_index, ((n * x[1] + first + c) * x[2] + ih) * x[3] + iw,
                      ((o * in_per_group + c) * w[2] + kh) * w[3] + kw);
              }
            }
          }
        }
      }
    }
  }
}

// Sums of products are gathered in the workspace, in double, and rounded once.
template <typename T>
void Round(const double* sums, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(sums[i]);
}

template <typename T>
void Conv(const HostCall& call) {
  const T* x = call.in<T>(0);
  const T* w = call.in<T>(1);
  const T* b = call.in<T>(2);
  const Shape& y = call.out_shape(0);
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t plane = y[2] * y[3];
  const int64_t count = NumElements(y);
  for (int64_t i = 0; i < count; ++i) sums[i] = b != nullptr ? b[i / plane % y[1]] : 0.0;
  ForEachProduct(call.attrs<ConvAttributes>(), call.in_shape(0), call.in_shape(1), y,
                 [&](int64_t yi, int64_t xi, int64_t wi) { sums[yi] += static_cast<double>(x[xi]) * w[wi]; });
  Round(sums, call.out<T>(0), count);
}

template <typename T>
void ConvGradInput(const HostCall& call) {
  const T* dy = call.in<T>(0);
  const T* w = call.in<T>(1);
  const Shape& x = call.out_shape(0);
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t count = NumElements(x);
  for (int64_t i = 0; i < count; ++i) sums[i] = 0;
  ForEachProduct(call.attrs<ConvAttributes>(), x, call.in_shape(1), call.in_shape(0),
                 [&](int64_t yi, int64_t xi, int64_t wi) { sums[xi] += static_cast<double>(dy[yi]) * w[wi]; });
  Round(sums, call.out<T>(0), count);
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
  const int64_t plane = y[2] * y[3];
  for (int64_t o = 0; o < y[1]; ++o) {
    double sum = 0;
    for (int64_t n = 0; n < y[0]; ++n) {
      for (int64_t i = 0; i < plane; ++i) sum += dy[(n * y[1] + o) * plane + i];
    }
    db[o] = static_cast<T>(sum);
  }
}

// MaxPool and MaxPoolWithArgmax. A NaN wins over everything before it, and nothing after it.
template <typename T>
void MaxPool(const HostCall& call) {
  const Window window(call.attrs<PoolAttributes>());
  const Shape& x_shape = call.in_shape(0);
  const Shape& y_shape = call.out_shape(0);
  int32_t* argmax = call.out<int32_t>(1);
  for (int64_t plane = 0; plane < y_shape[0] * y_shape[1]; ++plane) {
    const T* x = call.in<T>(0) + plane * x_shape[2] * x_shape[3];
    for (int64_t oh = 0; oh < y_shape[2]; ++oh) {
      for (int64_t ow = 0; ow < y_shape[3]; ++ow) {
        int64_t best = -1;
        for (int64_t kh = 0; kh < window.kernel_height; ++kh) {
          for (int64_t kw = 0; kw < window.kernel_width; ++kw) {
            const int64_t ih = window.row(oh, kh);
            const int64_t iw = window.column(ow, kw);
            if (ih < 0 || ih >= x_shape[2] || iw < 0 || iw >= x_shape[3]) continue;
            const int64_t at = ih * x_shape[3] + iw;
            const bool first_nan = x[at] != x[at] && (best < 0 || x[best] == x[best]);
            if (best < 0 || x[at] > x[best] || first_nan) best = at;
          }
        }
        const int64_t to = (plane * y_shape[2] + oh) * y_shape[3] + ow;
        // A window of padding alone, which dilation can make, has no winner.
        call.out<T>(0)[to] = best < 0 ? -std::numeric_limits<T>::infinity() : x[best];
        if (argmax != nullptr) argmax[to] = static_cast<int32_t>(best);
      }
    }
  }
}

template <typename T>
void MaxPoolGrad(const HostCall& call) {
  const T* dy = call.in<T>(0);
  const int32_t* argmax = call.in<int32_t>(1);
  const Shape& x = call.out_shape(0);
  const Shape& y = call.in_shape(0);
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t count = NumElements(x);
  for (int64_t i = 0; i < count; ++i) sums[i] = 0;
  const int64_t y_plane = y[2] * y[3];
  for (int64_t i = 0; i < NumElements(y); ++i) {
    if (argmax[i] >= 0) sums[i / y_plane * x[2] * x[3] + argmax[i]] += dy[i];
  }
  Round(sums, call.out<T>(0), count);
}

}  // namespace

template <typename T>
HostFunction SpatialFunction(OpType type) {
  switch (type) {
    case OpType::kConv:
      return &Conv<T>;
    case OpType::kConvGradInput:
      return &ConvGradInput<T>;
    case OpType::kConvGradWeight:
      return &ConvGradWeight<T>;
    case OpType::kMaxPool:
    case OpType::kMaxPoolWithArgmax:
      return &MaxPool<T>;
    case OpType::kMaxPoolGrad:
      return &MaxPoolGrad<T>;
    default:
      return nullptr;
  }
}

template HostFunction SpatialFunction<float>(OpType);
template HostFunction SpatialFunction<double>(OpType);

}  // namespace lockstep::device::reference
