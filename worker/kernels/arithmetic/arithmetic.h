// Arithmetic on one element of any number type, shared by all devices. It defines the integer cases that ONNX leaves
// open: overflow wraps around, and division by zero gives 0.
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

// Computes integers as unsigned, for which C++ defines wrap-around.
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

// Integers: 0 for b = 0; the lowest integer divided by -1 wraps around.
template <typename T>
LS_HD inline T Div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == T(0)) return T(0);
    if (b == static_cast<T>(-1) && std::is_signed_v<T>) return Neg(a);
  }
  return static_cast<T>(a / b);
}

// The remainder with the sign of a (C's %, fmod); 0 for an integer b = 0.
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

// The remainder with the sign of b (Python's %); 0 for an integer b = 0.
template <typename T>
LS_HD inline T Modulus(T a, T b) {
  const T remainder = RemainderOf(a, b);
  return remainder != T(0) && IsNegative(remainder) != IsNegative(b) ? static_cast<T>(remainder + b) : remainder;
}

// Smaller and Larger return NaN if either operand is NaN: a != a is true only for NaN.
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

// base^exponent modulo 2^bits. For a negative exponent the exact power truncated to an integer; 0 for base 0.
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

// base^exponent. An integer base with an integral exponent of any type uses IntegerPower. All else is computed in F64,
// which holds all values of F32 and I32, and converted to T like Cast.
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

// The gradients of a^b by a, which is 0 for b = 0, and by b, which is 0 for a = 0 and b >= 0.
LS_HD inline double PowerSlopeOfBase(double dy, double a, double b) {
  return b == 0 ? 0.0 : dy * (b * PowOf(a, b - 1));
}
LS_HD inline double PowerSlopeOfExponent(double dy, double a, double b) {
  return a == 0 && b >= 0 ? 0.0 : dy * (PowOf(a, b) * Log(a));
}

// Combines an element and an update as ScatterElements and ScatterND do. NaN propagates in max and min.
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
