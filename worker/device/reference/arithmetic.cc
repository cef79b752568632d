#include <cstdint>
#include <type_traits>

#include "common/math/rounding.h"
#include "worker/device/reference/convert.h"
#include "worker/device/reference/families.h"
#include "worker/device/reference/loops.h"

namespace lockstep::device::reference {
namespace {

// Integers wrap around: they are computed without a sign, where C++ defines that.
template <typename T, typename Op>
T Wrapping(T a, T b, Op op) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(op(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  } else {
    return op(a, b);
  }
}

template <typename T>
T Add(T a, T b) {
  return Wrapping(a, b, [](auto x, auto y) { return x + y; });
}

template <typename T>
T Sub(T a, T b) {
  return Wrapping(a, b, [](auto x, auto y) { return x - y; });
}

template <typename T>
T Mul(T a, T b) {
  return Wrapping(a, b, [](auto x, auto y) { return x * y; });
}

template <typename T>
T Neg(T x) {
  if constexpr (std::is_integral_v<T>) return Sub(T(0), x);
  return static_cast<T>(-x);
}

// The quotient of the smallest integer and -1 does not fit: it wraps around.
template <typename T>
T Div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == T(0)) return T(0);
    if (b == static_cast<T>(-1) && std::is_signed_v<T>) return Neg(a);
  }
  return static_cast<T>(a / b);
}

// With the sign of A.
template <typename T>
T RemainderOf(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == T(0) || (b == static_cast<T>(-1) && std::is_signed_v<T>)) return T(0);
    return static_cast<T>(a % b);
  } else {
    return Remainder(a, b);
  }
}

// With the sign of B.
template <typename T>
T Modulus(T a, T b) {
  const T remainder = RemainderOf(a, b);
  return remainder != T(0) && (remainder < T(0)) != (b < T(0)) ? static_cast<T>(remainder + b) : remainder;
}

template <typename T>
void Mod(const HostCall& call) {
  if (call.attrs<ModAttributes>().fmod) {
    Binary<T>(call, RemainderOf<T>);
  } else {
    Binary<T>(call, Modulus<T>);
  }
}

// A NaN is unequal to itself.
template <typename T>
T Smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

template <typename T>
T Larger(T a, T b) {
  return a > b || a != a ? a : b;
}

// The operands one after the other, from the left.
template <typename T, typename Op>
void Extremum(const HostCall& call, Op op) {
  T* y = call.out<T>(0);
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) {
    T result = BroadcastAt<T>(call, 0, i);
    for (size_t operand = 1; operand < call.inputs.size(); ++operand) {
      result = op(result, BroadcastAt<T>(call, operand, i));
    }
    y[i] = result;
  }
}

template <typename T>
T Abs(T x) {
  return x < T(0) ? Neg(x) : x == T(0) ? T(0) : x;
}

template <typename T>
T Sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? static_cast<T>(-1) : x;
}

// A NaN stays; a bound outside of the type is the nearest of the type.
template <typename T>
void Clip(const HostCall& call) {
  const auto& clip = call.attrs<ClipAttributes>();
  const T low = Convert<double, T>(clip.min);
  const T high = Convert<double, T>(clip.max);
  Unary<T>(call, [&](T x) {
    const T raised = x < low ? low : x;
    return raised > high ? high : raised;
  });
}

}  // namespace

template <typename T>
HostFunction ArithmeticFunction(OpType type) {
  switch (type) {
    case OpType::kAdd:
      return [](const HostCall& call) { Binary<T>(call, Add<T>); };
    case OpType::kSub:
      return [](const HostCall& call) { Binary<T>(call, Sub<T>); };
    case OpType::kMul:
      return [](const HostCall& call) { Binary<T>(call, Mul<T>); };
    case OpType::kDiv:
      return [](const HostCall& call) { Binary<T>(call, Div<T>); };
    case OpType::kMod:
      return &Mod<T>;
    case OpType::kMin:
      return [](const HostCall& call) { Extremum<T>(call, Smaller<T>); };
    case OpType::kMax:
      return [](const HostCall& call) { Extremum<T>(call, Larger<T>); };
    case OpType::kNeg:
      return [](const HostCall& call) { Unary<T>(call, Neg<T>); };
    case OpType::kAbs:
      return [](const HostCall& call) { Unary<T>(call, Abs<T>); };
    case OpType::kSign:
      return [](const HostCall& call) { Unary<T>(call, Sign<T>); };
    case OpType::kClip:
      return &Clip<T>;
    default:
      return nullptr;
  }
}

template HostFunction ArithmeticFunction<float>(OpType);
template HostFunction ArithmeticFunction<double>(OpType);
template HostFunction ArithmeticFunction<int64_t>(OpType);
template HostFunction ArithmeticFunction<int32_t>(OpType);
template HostFunction ArithmeticFunction<int8_t>(OpType);
template HostFunction ArithmeticFunction<uint8_t>(OpType);

}  // namespace lockstep::device::reference
