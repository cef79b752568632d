#include <type_traits>

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
