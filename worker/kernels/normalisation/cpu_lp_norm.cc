// LpNormalization and its gradient: lines along an axis, which are rows or stand side by side.
#include <algorithm>
#include <cstdint>

#include "common/math/math.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lane_sum.h"
#include "worker/kernels/cpu/lines.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr int64_t kBlock = 64;  // lines side by side

// sums[k] = the sum of value(i), the i of line k; the first of them is `base` + k.
template <typename Value>
void LineSums(const AxisExtents& e, int64_t base, int64_t count, const Value& value, double* sums) {
  if (e.inner == 1) {
    sums[0] = LaneSum(e.extent, [base, value](int64_t i) { return value(base + i); });
    return;
  }
  std::fill_n(sums, count, 0.0);
  for (int64_t i = 0; i < e.extent; ++i) {
    for (int64_t k = 0; k < count; ++k) sums[k] += value(base + i * e.inner + k);
  }
}

template <int64_t kP>
void Norms(const AxisExtents& e, const float* x, int64_t base, int64_t count, double* norms) {
  LineSums(
      e, base, count,
      [x](int64_t i) {
        const double value = x[i];
        return kP == 2 ? value * value : value < 0 ? -value : value;
      },
      norms);
  for (int64_t k = 0; k < count && kP == 2; ++k) norms[k] = SquareRoot(norms[k]);
}

template <int64_t kP>
void Forward(const HostCall& call) {
  const AxisExtents e(call.attrs<LpNormAttributes>().axis, call.in_shape(0));
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  ForLines(e, kBlock, [&](int64_t base, int64_t, int64_t count) {
    double norms[kBlock];
    Norms<kP>(e, x, base, count, norms);
    for (int64_t i = base; i < base + e.extent * e.inner; i += e.inner) {
      for (int64_t k = 0; k < count; ++k) {
        const double quotient = x[i + k] / norms[k];
        y[i + k] = norms[k] == 0 ? 0.0f : static_cast<float>(quotient);
      }
    }
  });
}

// dX = dY / norm - slope of the norm * sum(dY * X) / norm^2, that slope being sign(x) or x / norm.
template <int64_t kP>
void Backward(const HostCall& call) {
  const AxisExtents e(call.attrs<LpNormAttributes>().axis, call.in_shape(0));
  const float* dy = call.in<float>(0);
  const float* x = call.in<float>(1);
  float* dx = call.out<float>(0);
  ForLines(e, kBlock, [&](int64_t base, int64_t, int64_t count) {
    double norms[kBlock];
    double dots[kBlock];
    Norms<kP>(e, x, base, count, norms);
    LineSums(
        e, base, count, [dy, x](int64_t i) { return double{dy[i]} * x[i]; }, dots);
    for (int64_t k = 0; k < count; ++k) dots[k] /= norms[k] * norms[k];
    for (int64_t i = base; i < base + e.extent * e.inner; i += e.inner) {
      for (int64_t k = 0; k < count; ++k) {
        const double value = x[i + k];
        const double slope = kP == 2 ? value / norms[k] : value > 0 ? 1.0 : value < 0 ? -1.0 : value;
        const double gradient = dy[i + k] / norms[k] - slope * dots[k];
        dx[i + k] = norms[k] == 0 ? 0.0f : static_cast<float>(gradient);
      }
    }
  });
}

}  // namespace

OwnFunction OwnLpNorm(const KernelRequest& request) {
  const OpType op = request.node->op;
  if (op != OpType::kLpNormalization && op != OpType::kLpNormGrad) return {};
  const bool squares = AttributesOf<LpNormAttributes>(request).p == 2;
  if (op == OpType::kLpNormalization) return {squares ? &Forward<2> : &Forward<1>, "own:lp_norm"};
  return {squares ? &Backward<2> : &Backward<1>, "own:lp_norm"};
}

}  // namespace lockstep::device::cpu::LS_CODE
