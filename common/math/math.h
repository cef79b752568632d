// exp, log, tanh and related functions with a known error bound and the same bits on every machine: libm picks variants
// at run time, so nothing that reaches the state may call it. Header only, without tables and without branches other
// than a selection between two computed results, so that loops over them become vector code (GCC needs
// -fno-trapping-math for it, which changes no result, and always_inline: its own limits stop at the third function in a
// loop).
//
// Errors against the exact value: below 4 units of the last place. Results and arguments that would be denormal are
// taken as zero. NaN gives NaN.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_MATH_MATH_H_
#define LOCKSTEP_COMMON_MATH_MATH_H_

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/math/host_device.h"

namespace lockstep {

// Correctly rounded by IEEE 754: one instruction on every machine we run on.
LS_HD inline double SquareRoot(double x) { return __builtin_sqrt(x); }
LS_HD inline float SquareRoot(float x) { return __builtin_sqrtf(x); }

namespace math_internal {

// What differs between the two formats.
template <typename T>
struct Format;

template <>
struct Format<double> {
  using Bits = uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kBias = 1023;
  static constexpr double kLog2E = 0x1.71547652b82fep0;
  // ln 2 in two parts; the first has 21 trailing zero bits, so that multiples of it by an exponent are exact.
  static constexpr double kLn2High = 0x1.62e42fee00000p-1;
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  // Adding and taking away 1.5 * 2^52 rounds to the nearest integer and leaves it in the low bits.
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kExpZero = -708.0;  // below: zero
  static constexpr double kExpInfinity = 709.79;
};

template <>
struct Format<float> {
  using Bits = uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kBias = 127;
  static constexpr float kLog2E = 0x1.715476p0f;
  static constexpr float kLn2High = 0x1.63p-1f;
  static constexpr float kLn2Low = -0x1.bd0106p-13f;
  static constexpr float kRound = 0x1.8p23f;
  static constexpr float kExpZero = -87.33f;
  static constexpr float kExpInfinity = 88.73f;
};

// The number with this exponent field and an empty mantissa.
template <typename T>
LS_HD T FromExponent(typename Format<T>::Bits biased) {
  return std::bit_cast<T>(static_cast<typename Format<T>::Bits>(biased << Format<T>::kMantissaBits));
}

// (e^r - 1 - r) / r^2 by Taylor's series, for |r| <= 0.36: what is left out is below 1e-17 and 3e-9 of e^r.
[[gnu::always_inline]] LS_HD inline double ExpTail(double r) {
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  return p * r + 0.5;
}
[[gnu::always_inline]] LS_HD inline float ExpTail(float r) {
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  return p * r + 0.5f;
}

// atanh(s) / s - 1 over z = s^2, for |s| <= 0.172.
[[gnu::always_inline]] LS_HD inline double AtanhTail(double z) {
  double p = 1.0 / 23.0;
  p = p * z + 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  return p * z;
}
[[gnu::always_inline]] LS_HD inline float AtanhTail(float z) {
  float p = 1.0f / 9.0f;
  p = p * z + 1.0f / 7.0f;
  p = p * z + 1.0f / 5.0f;
  p = p * z + 1.0f / 3.0f;
  return p * z;
}

// x = k ln 2 + r with whole k; scale is 2^k in two factors, since k may be one more than the largest exponent.
template <typename T>
struct Reduced {
  [[gnu::always_inline]] LS_HD explicit Reduced(T x) {
    using F = Format<T>;
    using Bits = typename F::Bits;
    const T shifted = x * F::kLog2E + F::kRound;
    const T k = shifted - F::kRound;
    const T r = (x - k * F::kLn2High) - k * F::kLn2Low;
    tail = r + r * r * ExpTail(r);
    const Bits n = std::bit_cast<Bits>(shifted) - std::bit_cast<Bits>(F::kRound) + 2 * F::kBias;
    scale[0] = FromExponent<T>(n >> 1);
    scale[1] = FromExponent<T>(n - (n >> 1));
  }
  T tail;  // e^r - 1
  T scale[2];
};

template <typename T>
[[gnu::always_inline]] LS_HD inline T ExpOf(T x) {
  using F = Format<T>;
  // A NaN passes both comparisons and stays.
  T clamped = x < F::kExpZero ? F::kExpZero : x;
  clamped = clamped > F::kExpInfinity ? F::kExpInfinity : clamped;
  const Reduced<T> reduced(clamped);
  const T result = (T(1) + reduced.tail) * reduced.scale[0] * reduced.scale[1];
  return x < F::kExpZero ? T(0) : result;
}

// e^x - 1 without cancellation. REQUIRES: |x| <= 40, or NaN.
template <typename T>
[[gnu::always_inline]] LS_HD inline T SmallExpm1(T x) {
  const Reduced<T> reduced(x);
  const T scale = reduced.scale[0] * reduced.scale[1];
  return (scale - T(1)) + scale * reduced.tail;
}

template <typename T>
[[gnu::always_inline]] LS_HD inline T LogOf(T x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  // x = m * 2^k with m in [sqrt(1/2), sqrt(2)): the exponent moves up by one where the mantissa is above sqrt(2).
  const Bits bits = std::bit_cast<Bits>(x);
  const Bits one = F::kBias << F::kMantissaBits;
  const Bits above = std::bit_cast<Bits>(T(0x1.6a09e667f3bcdp0)) - one;
  const Bits shifted = bits - one + ((Bits{1} << F::kMantissaBits) - above);
  const Bits k = (shifted + one) >> F::kMantissaBits;  // biased
  const T m = std::bit_cast<T>(static_cast<Bits>(bits - ((k - F::kBias) << F::kMantissaBits)));
  const T f = m - T(1);
  const T s = f / (m + T(1));
  const T tail = T(2) * s * AtanhTail(s * s);
  const T e = static_cast<T>(static_cast<std::make_signed_t<Bits>>(k - F::kBias));
  T result = e * F::kLn2High + (T(2) * s + (tail + e * F::kLn2Low));
  result = x < std::numeric_limits<T>::min() ? -std::numeric_limits<T>::infinity() : result;
  result = x > std::numeric_limits<T>::max() ? x : result;
  return x >= T(0) ? result : std::numeric_limits<T>::quiet_NaN();
}

template <typename T>
[[gnu::always_inline]] LS_HD inline T Magnitude(T x) {
  return x < T(0) ? -x : x;
}

}  // namespace math_internal

// e^x. Infinity where it exceeds the type's range.
[[gnu::always_inline]] LS_HD inline double Exp(double x) { return math_internal::ExpOf(x); }
[[gnu::always_inline]] LS_HD inline float Exp(float x) { return math_internal::ExpOf(x); }

// e^x - 1 without cancellation. REQUIRES: x <= 0, or NaN.
template <typename T>
[[gnu::always_inline]] LS_HD inline T Expm1OfNegative(T x) {
  // At -40 the result has long rounded to -1.
  return math_internal::SmallExpm1(x < T(-40) ? T(-40) : x);
}

// Natural logarithm. -infinity at 0, NaN below.
[[gnu::always_inline]] LS_HD inline double Log(double x) { return math_internal::LogOf(x); }
[[gnu::always_inline]] LS_HD inline float Log(float x) { return math_internal::LogOf(x); }

// log(1 + x), without cancellation near zero. REQUIRES: x > -1.
LS_HD inline double Log1p(double x) {
  const double u = 1.0 + x;
  const double corrected = Log(u) * (x / (u - 1.0));
  return u == 1.0 || u > std::numeric_limits<double>::max() ? x : corrected;
}

// Hyperbolic tangent.
template <typename T>
[[gnu::always_inline]] LS_HD inline T Tanh(T x) {
  const T magnitude = math_internal::Magnitude(x);
  // At 20 the result has long rounded to 1.
  const T e = math_internal::SmallExpm1(T(2) * (magnitude > T(20) ? T(20) : magnitude));
  const T t = e / (e + T(2));
  return x < T(0) ? -t : x > T(0) ? t : x;
}

// 1 / (1 + e^-x), from the side on which nothing overflows.
template <typename T>
[[gnu::always_inline]] LS_HD inline T Sigmoid(T x) {
  const T e = Exp(-math_internal::Magnitude(x));
  return (x >= T(0) ? T(1) : e) / (T(1) + e);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MATH_MATH_H_
