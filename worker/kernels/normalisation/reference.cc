#include "common/math/math.h"
#include "worker/kernels/axis_shapes.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

struct Statistics {
  double mean = 0;
  double inv_std = 0;
};

// Of n neighbouring elements.
template <typename T>
Statistics StatisticsOf(const T* x, int64_t n, double epsilon) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(n);
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, 1.0 / SquareRoot(squares / static_cast<double>(n) + epsilon)};
}

template <typename T>
void LayerNorm(const HostCall& call) {
  const auto& attributes = call.attrs<LayerNormAttributes>();
  const RowExtents e(attributes.axis, call.in_shape(0));
  const T* scale = call.in<T>(1);
  const T* bias = call.in<T>(2);
  for (int64_t row = 0; row < e.rows; ++row) {
    const T* x = call.in<T>(0) + row * e.width;
    T* y = call.out<T>(0) + row * e.width;
    const Statistics s = StatisticsOf(x, e.width, attributes.epsilon);
    for (int64_t i = 0; i < e.width; ++i) {
      y[i] = static_cast<T>((x[i] - s.mean) * s.inv_std * scale[i] + (bias != nullptr ? double{bias[i]} : 0.0));
    }
    if (call.out<T>(1) != nullptr) call.out<T>(1)[row] = static_cast<T>(s.mean);
    if (call.out<T>(2) != nullptr) call.out<T>(2)[row] = static_cast<T>(s.inv_std);
  }
}

// What reached the norm's input by another way, and is added to dX; 0 where there is none.
template <typename T>
double BesideAt(const HostCall& call, size_t input, int64_t i) {
  return call.in<T>(input) != nullptr ? static_cast<double>(call.in<T>(input)[i]) : 0.0;
}

// With xhat = (x - mean) * inv_std, g = dY * scale and means over a row:
//   dX = inv_std * (g - mean(g) - xhat * mean(g * xhat)), dScale = sum of dY * xhat over rows, dBias = sum of dY
template <typename T>
void LayerNormGrad(const HostCall& call) {
  const RowExtents e(call.attrs<LayerNormAttributes>().axis, call.in_shape(1));
  const T* scale = call.in<T>(2);
  auto* dscale = reinterpret_cast<double*>(call.workspace);
  double* dbias = dscale + e.width;
  for (int64_t i = 0; i < 2 * e.width; ++i) dscale[i] = 0;
  for (int64_t row = 0; row < e.rows; ++row) {
    const T* dy = call.in<T>(0) + row * e.width;
    const T* x = call.in<T>(1) + row * e.width;
    const double mean = call.in<T>(3)[row];
    const double inv_std = call.in<T>(4)[row];
    double sum = 0;
    double dot = 0;
    for (int64_t i = 0; i < e.width; ++i) {
      const double xhat = (x[i] - mean) * inv_std;
      const double g = static_cast<double>(dy[i]) * scale[i];
      sum += g;
      dot += g * xhat;
      dscale[i] += dy[i] * xhat;
      dbias[i] += dy[i];
    }
    const auto n = static_cast<double>(e.width);
    if (call.out<T>(0) == nullptr) continue;
    for (int64_t i = 0; i < e.width; ++i) {
      const double xhat = (x[i] - mean) * inv_std;
      const double g = static_cast<double>(dy[i]) * scale[i];
      const int64_t at = row * e.width + i;
      call.out<T>(0)[at] = static_cast<T>(inv_std * (g - sum / n - xhat * dot / n) + BesideAt<T>(call, 5, at));
    }
  }
  for (int64_t i = 0; i < e.width; ++i) {
    if (call.out<T>(1) != nullptr) call.out<T>(1)[i] = static_cast<T>(dscale[i]);
    if (call.out<T>(2) != nullptr) call.out<T>(2)[i] = static_cast<T>(dbias[i]);
  }
}

template <typename T>
double InverseRms(const T* x, int64_t n, double epsilon) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * x[i];
  return 1.0 / SquareRoot(squares / static_cast<double>(n) + epsilon);
}

template <typename T>
void RmsNorm(const HostCall& call) {
  const auto& attributes = call.attrs<LayerNormAttributes>();
  const RowExtents e(attributes.axis, call.in_shape(0));
  for (int64_t row = 0; row < e.rows; ++row) {
    const T* x = call.in<T>(0) + row * e.width;
    const double inverse = InverseRms(x, e.width, attributes.epsilon);
    for (int64_t i = 0; i < e.width; ++i) {
      call.out<T>(0)[row * e.width + i] = static_cast<T>(x[i] * inverse * call.in<T>(1)[i]);
    }
  }
}

// With xhat = x * inv_rms and g = dY * scale: dX = inv_rms * (g - xhat * mean(g * xhat)).
template <typename T>
void RmsNormGrad(const HostCall& call) {
  const auto& attributes = call.attrs<LayerNormAttributes>();
  const RowExtents e(attributes.axis, call.in_shape(1));
  const T* scale = call.in<T>(2);
  auto* dscale = reinterpret_cast<double*>(call.workspace);
  for (int64_t i = 0; i < e.width; ++i) dscale[i] = 0;
  for (int64_t row = 0; row < e.rows; ++row) {
    const T* dy = call.in<T>(0) + row * e.width;
    const T* x = call.in<T>(1) + row * e.width;
    const double inverse = InverseRms(x, e.width, attributes.epsilon);
    double dot = 0;
    for (int64_t i = 0; i < e.width; ++i) {
      const double xhat = x[i] * inverse;
      dot += static_cast<double>(dy[i]) * scale[i] * xhat;
      dscale[i] += dy[i] * xhat;
    }
    if (call.out<T>(0) == nullptr) continue;
    for (int64_t i = 0; i < e.width; ++i) {
      const double g = static_cast<double>(dy[i]) * scale[i];
      const int64_t at = row * e.width + i;
      const double slope = x[i] * inverse * dot / static_cast<double>(e.width);
      call.out<T>(0)[at] = static_cast<T>(inverse * (g - slope) + BesideAt<T>(call, 3, at));
    }
  }
  if (call.out<T>(1) == nullptr) return;
  for (int64_t i = 0; i < e.width; ++i) call.out<T>(1)[i] = static_cast<T>(dscale[i]);
}

// GroupNormalization and InstanceNormalization.
template <typename T>
void GroupNorm(const HostCall& call) {
  const auto& attributes = call.attrs<GroupNormAttributes>();
  const GroupExtents e(attributes.num_groups, call.in_shape(0));
  for (int64_t row = 0; row < e.rows; ++row) {
    const T* x = call.in<T>(0) + row * e.width();
    const Statistics s = StatisticsOf(x, e.width(), attributes.epsilon);
    for (int64_t i = 0; i < e.width(); ++i) {
      const int64_t c = e.channel(row, i);
      call.out<T>(0)[row * e.width() + i] =
          static_cast<T>((x[i] - s.mean) * s.inv_std * call.in<T>(1)[c] + call.in<T>(2)[c]);
    }
  }
}

// As LayerNormGrad, with scale and bias of channels.
template <typename T>
void GroupNormGrad(const HostCall& call) {
  const auto& attributes = call.attrs<GroupNormAttributes>();
  const GroupExtents e(attributes.num_groups, call.in_shape(1));
  auto* dscale = reinterpret_cast<double*>(call.workspace);
  double* dbias = dscale + e.all_channels;
  for (int64_t i = 0; i < 2 * e.all_channels; ++i) dscale[i] = 0;
  for (int64_t row = 0; row < e.rows; ++row) {
    const T* dy = call.in<T>(0) + row * e.width();
    const T* x = call.in<T>(1) + row * e.width();
    const Statistics s = StatisticsOf(x, e.width(), attributes.epsilon);
    double sum = 0;
    double dot = 0;
    for (int64_t i = 0; i < e.width(); ++i) {
      const int64_t c = e.channel(row, i);
      const double xhat = (x[i] - s.mean) * s.inv_std;
      const double g = static_cast<double>(dy[i]) * call.in<T>(2)[c];
      sum += g;
      dot += g * xhat;
      dscale[c] += dy[i] * xhat;
      dbias[c] += dy[i];
    }
    const auto n = static_cast<double>(e.width());
    if (call.out<T>(0) == nullptr) continue;
    for (int64_t i = 0; i < e.width(); ++i) {
      const double xhat = (x[i] - s.mean) * s.inv_std;
      const double g = static_cast<double>(dy[i]) * call.in<T>(2)[e.channel(row, i)];
      call.out<T>(0)[row * e.width() + i] = static_cast<T>(s.inv_std * (g - sum / n - xhat * dot / n));
    }
  }
  for (int64_t c = 0; c < e.all_channels; ++c) {
    if (call.out<T>(1) != nullptr) call.out<T>(1)[c] = static_cast<T>(dscale[c]);
    if (call.out<T>(2) != nullptr) call.out<T>(2)[c] = static_cast<T>(dbias[c]);
  }
}

template <typename T>
double LineNorm(const T* x, const AxisExtents& e, int64_t p) {
  double sum = 0;
  for (int64_t i = 0; i < e.extent; ++i) {
    const double value = x[i * e.inner];
    sum += p == 2 ? value * value : value < 0 ? -value : value;
  }
  return p == 2 ? SquareRoot(sum) : sum;
}

template <typename T>
void LpNorm(const HostCall& call) {
  const auto& attributes = call.attrs<LpNormAttributes>();
  const AxisExtents e(attributes.axis, call.in_shape(0));
  for (int64_t row = 0; row < e.outer * e.inner; ++row) {
    const T* x = call.in<T>(0) + e.base(row);
    T* y = call.out<T>(0) + e.base(row);
    const double norm = LineNorm(x, e, attributes.p);
    for (int64_t i = 0; i < e.extent; ++i) y[i * e.inner] = norm == 0 ? T(0) : static_cast<T>(x[i * e.inner] / norm);
  }
}

// dX = dY / norm - slope of the norm * sum(dY * X) / norm^2, that slope being sign(x) or x / norm.
template <typename T>
void LpNormGrad(const HostCall& call) {
  const auto& attributes = call.attrs<LpNormAttributes>();
  const AxisExtents e(attributes.axis, call.in_shape(0));
  for (int64_t row = 0; row < e.outer * e.inner; ++row) {
    const T* dy = call.in<T>(0) + e.base(row);
    const T* x = call.in<T>(1) + e.base(row);
    T* dx = call.out<T>(0) + e.base(row);
    const double norm = LineNorm(x, e, attributes.p);
    double dot = 0;
    for (int64_t i = 0; i < e.extent; ++i) dot += static_cast<double>(dy[i * e.inner]) * x[i * e.inner];
    for (int64_t i = 0; i < e.extent; ++i) {
      const double value = x[i * e.inner];
      const double slope = attributes.p == 2 ? value / norm : value > 0 ? 1.0 : value < 0 ? -1.0 : value;
      dx[i * e.inner] = norm == 0 ? T(0) : static_cast<T>(dy[i * e.inner] / norm - slope * dot / (norm * norm));
    }
  }
}

}  // namespace

template <typename T>
HostFunction NormalisationFunction(OpType type) {
  switch (type) {
    case OpType::kLayerNormalization:
      return &LayerNorm<T>;
    case OpType::kLayerNormGrad:
      return &LayerNormGrad<T>;
    case OpType::kRmsNormalization:
      return &RmsNorm<T>;
    case OpType::kRmsNormGrad:
      return &RmsNormGrad<T>;
    case OpType::kGroupNormalization:
    case OpType::kInstanceNormalization:
      return &GroupNorm<T>;
    case OpType::kGroupNormGrad:
      return &GroupNormGrad<T>;
    case OpType::kLpNormalization:
      return &LpNorm<T>;
    case OpType::kLpNormGrad:
      return &LpNormGrad<T>;
    default:
      return nullptr;
  }
}

template HostFunction NormalisationFunction<float>(OpType);
template HostFunction NormalisationFunction<double>(OpType);

}  // namespace lockstep::device::reference
