// Arithmetic on one element of any number type, for the kernels of every device: what ONNX leaves open about integers
// is decided here.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_ARITHMETIC_ARITHMETIC_H_
#define LOCKSTEP_WORKER_KERNELS_ARITHMETIC_ARITHMETIC_H_

#include <cstdint>
#include <type_traits>

#include "common/graph/ops/scatter.h"
#include "common/math/host_device.h"
#include "common/math/math.h"
#include "common/math/power_formula.h"
#include "common/math/rounding.h"
#include "worker/kernels/convert.h"

namespace lockstep::device {

// Integers wrap around: they are computed without a sign, where C++ defines that.
template <typename T, typename Op>
LS_HD inline T Wrapping(T a, T b, Op op) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(op(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  } else {
    return op(a, b);
  }
}

template <typename T>
LS_HD inline T Add(T a, T b) {
  return Wrapping(a, b, [](auto x, auto y) { return x + y; });
}

template <typename T>
LS_HD inline T Sub(T a, T b) {
  return Wrapping(a, b, [](auto x, auto y) { return x - y; });
}

template <typename T>
LS_HD inline T Mul(T a, T b) {
  return Wrapping(a, b, [](auto x, auto y) { return x * y; });
}

template <typename T>
LS_HD inline T Neg(T x) {
  if constexpr (std::is_integral_v<T>) return Sub(T(0), x);
  return static_cast<T>(-x);
}

// The quotient of the smallest integer and -1 does not fit: it wraps around.
template <typename T>
LS_HD inline T Div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == T(0)) return T(0);
    if (b == static_cast<T>(-1) && std::is_signed_v<T>) return Neg(a);
  }
  return static_cast<T>(a / b);
}

// With the sign of A.
template <typename T>
LS_HD inline T RemainderOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == T(0) || (b == static_cast<T>(-1) && std::is_signed_v<T>)) return T(0);
    return static_cast<T>(a % b);
  } else {
    return Remainder(a, b);
  }
}

template <typename T>
LS_HD inline bool IsNegative(T x) {
  if constexpr (std::is_unsigned_v<T>) {
    return false;
  } else {
    return x < T(0);
  }
}

// With the sign of B.
template <typename T>
LS_HD inline T Modulus(T a, T b) {
  const T remainder = RemainderOf(a, b);
  return remainder != T(0) && IsNegative(remainder) != IsNegative(b) ? static_cast<T>(remainder + b) : remainder;
}

// A NaN is unequal to itself.
template <typename T>
LS_HD inline T Smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

template <typename T>
LS_HD inline T Larger(T a, T b) {
  return a > b || a != a ? a : b;
}

template <typename T>
LS_HD inline T Abs(T x) {
  return IsNegative(x) ? Neg(x) : x == T(0) ? T(0) : x;
}

template <typename T>
LS_HD inline T Sign(T x) {
  return x > T(0) ? T(1) : IsNegative(x) ? static_cast<T>(-1) : x;
}

// Modulo 2^bits; the exact power without what lies behind the point for a negative exponent, 0 for 0 to that.
template <typename T>
LS_HD inline T IntegerPower(T base, int64_t exponent) {
  if (exponent < 0) {
    if (base == T(-1)) return exponent % 2 == 0 ? T(1) : T(-1);
    return base == T(1) ? T(1) : T(0);
  }
  using Unsigned = std::make_unsigned_t<T>;
  Unsigned result = 1;
  auto square = static_cast<Unsigned>(base);
  for (int64_t left = exponent; left > 0; left /= 2) {
    if (left % 2 == 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

// A whole exponent of an integer counts as an integer. The rest in F64, which has all of F32 and I32; then to T as Cast
// does.
template <typename T, typename Exponent>
LS_HD inline T Power(T base, Exponent exponent) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<Exponent>) {
    return IntegerPower(base, exponent);
  } else {
    const auto wide = static_cast<double>(exponent);
    if constexpr (std::is_integral_v<T>) {
      if (Truncate(wide) == wide && wide > -0x1p62 && wide < 0x1p62) {
        return IntegerPower(base, static_cast<int64_t>(wide));
      }
    }
    return Convert<double, T>(PowOf(static_cast<double>(base), wide));
  }
}

// The gradients of a to the power of b: 0 where b is 0, and where a is 0 and b is not negative.
LS_HD inline double PowerSlopeOfBase(double dy, double a, double b) {
  return b == 0 ? 0.0 : dy * (b * PowOf(a, b - 1));
}
LS_HD inline double PowerSlopeOfExponent(double dy, double a, double b) {
  return a == 0 && b >= 0 ? 0.0 : dy * (PowOf(a, b) * Log(a));
}

// What ScatterElements and ScatterND make of an element and an update. A NaN wins.
template <typename T>
LS_HD inline T Combine(T a, T b, ScatterReduction reduction) {
  using Number = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
  switch (reduction) {
    case ScatterReduction::kAdd:
      return static_cast<T>(static_cast<Number>(a) + static_cast<Number>(b));
    case ScatterReduction::kMul:
      return static_cast<T>(static_cast<Number>(a) * static_cast<Number>(b));
    case ScatterReduction::kMax:
      return a < b || b != b ? b : a;
    case ScatterReduction::kMin:
      return b < a || b != b ? b : a;
    case ScatterReduction::kNone:
      break;
  }
  return b;
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_ARITHMETIC_ARITHMETIC_H_
