#include "common/math/power.h"

#include <cstdint>
#include <type_traits>

#include "common/math/math.h"
#include "common/math/rounding.h"
#include "worker/device/reference/convert.h"
#include "worker/device/reference/element_types.h"
#include "worker/device/reference/families.h"
#include "worker/device/reference/loops.h"

namespace lockstep::device::reference {
namespace {

// Modulo 2^bits; the exact power without what lies behind the point for a negative exponent, 0 for 0 to that.
template <typename T>
T IntegerPower(T base, int64_t exponent) {
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
T Power(T base, Exponent exponent) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<Exponent>) {
    return IntegerPower(base, exponent);
  } else {
    const auto wide = static_cast<double>(exponent);
    if constexpr (std::is_integral_v<T>) {
      if (Truncate(wide) == wide && wide > -0x1p62 && wide < 0x1p62) {
        return IntegerPower(base, static_cast<int64_t>(wide));
      }
    }
    return Convert<double, T>(Pow(static_cast<double>(base), wide));
  }
}

template <typename T, typename Exponent>
void PowLoop(const HostCall& call) {
  T* y = call.out<T>(0);
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) y[i] = Power(BroadcastAt<T>(call, 0, i), BroadcastAt<Exponent>(call, 1, i));
}

template <typename T, typename Exponent>
void PowGrad(const HostCall& call) {
  const T* dy = call.in<T>(0);
  T* da = call.out<T>(0);
  T* db = call.out<T>(1);
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) {
    const double a = BroadcastAt<T>(call, 1, i);
    const auto b = static_cast<double>(BroadcastAt<Exponent>(call, 2, i));
    const double gradient = dy[i];
    da[i] = b == 0 ? T(0) : static_cast<T>(gradient * (b * Pow(a, b - 1)));
    if (db != nullptr) db[i] = a == 0 && b >= 0 ? T(0) : static_cast<T>(gradient * (Pow(a, b) * Log(a)));
  }
}

}  // namespace

HostFunction PowerFunction(const KernelRequest& request) {
  if (request.node->op == OpType::kPow) {
    const DType exponent = request.inputs[1].dtype;
    return ForNumber(request.outputs[0].dtype, [exponent]<typename T>() {
      return ForNumber(exponent, []<typename Exponent>() -> HostFunction { return &PowLoop<T, Exponent>; });
    });
  }
  if (request.node->op == OpType::kPowGrad) {
    const DType exponent = request.inputs[2].dtype;
    return ForFloating(request.outputs[0].dtype, [exponent]<typename T>() {
      return ForNumber(exponent, []<typename Exponent>() -> HostFunction { return &PowGrad<T, Exponent>; });
    });
  }
  return nullptr;
}

}  // namespace lockstep::device::reference
