// Activation functions and their derivatives for one element, shared by all devices. They are free of branches, so that
// the compiler can vectorise loops over them.
//
// Each derivative (Slope) is a function of x. At kinks it has PyTorch's value. A function of NaN is NaN: where a
// comparison chooses, NaN goes the way of x.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_ACTIVATION_ACTIVATION_H_
#define LOCKSTEP_WORKER_KERNELS_ACTIVATION_ACTIVATION_H_

#include "common/math/erf.h"
#include "common/math/math.h"

namespace lockstep::device {

// max(x, 0) + slope * min(x, 0)
template <typename T>
[[gnu::always_inline]] LS_HD inline T LeakyRelu(T x, T slope) {
  return x > T(0) ? x : x * slope;
}
template <typename T>
[[gnu::always_inline]] LS_HD inline T LeakyReluSlope(T x, T slope) {
  return x > T(0) ? T(1) : slope;
}

// scale * x for x > 0, else scale * alpha * (e^(x * rate) - 1): Elu, Selu and Celu.
template <typename T>
[[gnu::always_inline]] LS_HD inline T ExponentialUnit(T x, T alpha, T scale, T rate) {
  const T below = alpha * Expm1OfNegative((x > T(0) ? T(0) : x) * rate);
  return scale * (x > T(0) ? x : below);
}
template <typename T>
[[gnu::always_inline]] LS_HD inline T ExponentialUnitSlope(T x, T alpha, T scale, T rate) {
  const T below = alpha * rate * Exp((x > T(0) ? T(0) : x) * rate);
  return scale * (x > T(0) ? T(1) : below);
}

// min(max(x, low), high): `high` where low > high. NaN stays NaN.
template <typename T>
[[gnu::always_inline]] LS_HD inline T Clamp(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

// alpha * x + beta, clamped to [0, 1]
template <typename T>
[[gnu::always_inline]] LS_HD inline T HardSigmoid(T x, T alpha, T beta) {
  return Clamp(alpha * x + beta, T(0), T(1));
}
template <typename T>
[[gnu::always_inline]] LS_HD inline T HardSigmoidSlope(T x, T alpha, T beta) {
  const T line = alpha * x + beta;
  return line > T(0) ? (line < T(1) ? alpha : T(0)) : T(0);
}

// x * HardSigmoid(x) with alpha = 1/6, beta = 1/2
template <typename T>
[[gnu::always_inline]] LS_HD inline T HardSwish(T x) {
  return x * HardSigmoid(x, T(1) / T(6), T(0.5));
}
template <typename T>
[[gnu::always_inline]] LS_HD inline T HardSwishSlope(T x) {
  const T inside = x * (T(1) / T(3)) + T(0.5);
  return x > T(-3) ? (x < T(3) ? inside : T(1)) : T(0);
}

// x * Phi(x), where Phi is the cumulative distribution function of the standard normal distribution
template <typename T>
[[gnu::always_inline]] LS_HD inline T Gelu(T x) {
  return x * NormalCdf(x);
}
template <typename T>
[[gnu::always_inline]] LS_HD inline T GeluSlope(T x) {
  return NormalCdf(x) + x * NormalDensity(x);
}

// (1 + tanh(u)) / 2 with u = sqrt(2 / pi) * (x + 0.044715 * x^3), computed as 1 / (1 + e^(-2u)): one exponential, and
// no cancellation where the result is small.
template <typename T>
[[gnu::always_inline]] LS_HD inline T GeluTanhFactor(T x, T square) {
  constexpr T kMinusTwoRoots = T(-0x1.9884533d43651p0);
  return T(1) / (T(1) + Exp(kMinusTwoRoots * x * (T(1) + T(0.044715) * square)));
}

// x / 2 * (1 + tanh(u))
template <typename T>
[[gnu::always_inline]] LS_HD inline T GeluTanh(T x) {
  return x * GeluTanhFactor(x, x * x);
}
template <typename T>
[[gnu::always_inline]] LS_HD inline T GeluTanhSlope(T x) {
  constexpr T kTwoRoots = T(0x1.9884533d43651p0);
  const T square = x * x;
  const T factor = GeluTanhFactor(x, square);
  return factor + kTwoRoots * x * (T(1) + T(3 * 0.044715) * square) * (factor * (T(1) - factor));
}

// The factor of Mish: tanh(log(1 + e^x)) = n / (n + 2) with e = e^x and n = e * (e + 2). For x >= 20 it rounds to 1.
template <typename T>
[[gnu::always_inline]] LS_HD inline T MishFactor(T x) {
  const T e = Exp(x < T(20) ? x : T(20));
  const T n = e * (e + T(2));
  return n / (n + T(2));
}
template <typename T>
[[gnu::always_inline]] LS_HD inline T Mish(T x) {
  return x * MishFactor(x);
}
template <typename T>
[[gnu::always_inline]] LS_HD inline T MishSlope(T x) {
  const T factor = MishFactor(x);
  return factor + x * Sigmoid(x) * (T(1) - factor * factor);
}

// log(1 + e^x) in double, as max(x, 0) + log(1 + e^-|x|), which cannot overflow.
template <typename T>
[[gnu::always_inline]] LS_HD inline T Softplus(T x) {
  const double wide = x;
  return static_cast<T>((wide > 0 ? wide : 0.0) + Log1p(Exp(wide > 0 ? -wide : wide)));
}

// x where it is above `edge`, else 0
template <typename T>
[[gnu::always_inline]] LS_HD inline T ThresholdedRelu(T x, T edge) {
  return x <= edge ? T(0) : x;
}

// x moved towards 0 by `bias`; 0 where |x| <= `edge`.
template <typename T>
[[gnu::always_inline]] LS_HD inline T Shrink(T x, T edge, T bias) {
  const T above = x <= edge ? T(0) : x - bias;
  return x < -edge ? x + bias : above;
}
template <typename T>
[[gnu::always_inline]] LS_HD inline T ShrinkSlope(T x, T edge) {
  const T below = x < -edge ? T(1) : T(0);
  return x > edge ? T(1) : below;
}

// x / (1 + |x|)
template <typename T>
[[gnu::always_inline]] LS_HD inline T Softsign(T x) {
  return x / (T(1) + (x < T(0) ? -x : x));
}
template <typename T>
[[gnu::always_inline]] LS_HD inline T SoftsignSlope(T x) {
  const T below = T(1) + (x < T(0) ? -x : x);
  return T(1) / (below * below);
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_ACTIVATION_ACTIVATION_H_
