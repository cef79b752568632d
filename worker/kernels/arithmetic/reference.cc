#include "worker/kernels/activation/activation.h"
#include "worker/kernels/arithmetic/arithmetic.h"
#include "worker/kernels/convert.h"
#include "worker/kernels/reference/families.h"
#include "worker/kernels/reference/loops.h"

namespace lockstep::device::reference {
namespace {

template <typename T>
void Mod(const HostCall& call) {
  if (call.attrs<ModAttributes>().fmod) {
    Binary<T>(call, RemainderOf<T>);
  } else {
    Binary<T>(call, Modulus<T>);
  }
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

// A NaN stays; a bound outside of the type is the nearest of the type.
template <typename T>
void Clip(const HostCall& call) {
  const auto& clip = call.attrs<ClipAttributes>();
  const T low = Convert<double, T>(clip.min);
  const T high = Convert<double, T>(clip.max);
  Unary<T>(call, [&](T x) { return Clamp(x, low, high); });
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
