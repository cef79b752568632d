// Rounding to whole numbers and the exact remainder, without libm and, but for Remainder, without branches. NaN gives
// NaN; zeros keep their sign.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_MATH_ROUNDING_H_
#define LOCKSTEP_COMMON_MATH_ROUNDING_H_

#include <limits>

#include "common/math/host_device.h"

namespace lockstep {

// The magnitude of x with the sign of `sign`.
[[gnu::always_inline]] LS_HD inline double CopySign(double x, double sign) { return __builtin_copysign(x, sign); }
[[gnu::always_inline]] LS_HD inline float CopySign(float x, float sign) { return __builtin_copysignf(x, sign); }

// The nearest whole number; halfway cases go to the even one.
template <typename T>
[[gnu::always_inline]] LS_HD inline T RoundEven(T x) {
  // From here on every number is whole; adding and subtracting it rounds to a whole number.
  constexpr T kWhole = T(1) / std::numeric_limits<T>::epsilon();
  const T magnitude = CopySign(x, T(1));
  const T rounded = (magnitude + kWhole) - kWhole;
  return CopySign(magnitude < kWhole ? rounded : magnitude, x);
}

// The largest whole number that is not above x.
template <typename T>
[[gnu::always_inline]] LS_HD inline T Floor(T x) {
  const T rounded = RoundEven(x);
  return CopySign(rounded > x ? rounded - T(1) : rounded, x);
}

// The smallest whole number that is not below x.
template <typename T>
[[gnu::always_inline]] LS_HD inline T Ceil(T x) {
  return -Floor(-x);
}

// x without its fractional part.
template <typename T>
[[gnu::always_inline]] LS_HD inline T Truncate(T x) {
  return CopySign(Floor(CopySign(x, T(1))), x);
}

// x - n * y, exactly, where n is x / y truncated towards zero: C's fmod, with the sign of x. NaN for a y of zero or an
// infinite x.
template <typename T>
LS_HD T Remainder(T x, T y) {
  constexpr T kMost = std::numeric_limits<T>::max();
  T left = CopySign(x, T(1));
  const T divisor = CopySign(y, T(1));
  if (!(divisor > T(0)) || !(left <= kMost)) return std::numeric_limits<T>::quiet_NaN();
  if (divisor > left) return x;
  // The largest divisor * 2^k that is not above what is left; doubling and halving it are exact, and so are the
  // differences.
  T part = divisor;
  while (part <= left - part) part += part;
  for (; part >= divisor; part *= T(0.5)) left -= left >= part ? part : T(0);
  return CopySign(left, x);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MATH_ROUNDING_H_
