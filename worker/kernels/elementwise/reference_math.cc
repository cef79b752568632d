#include "common/math/erf.h"
#include "common/math/inverse_formula.h"
#include "common/math/math.h"
#include "common/math/rounding.h"
#include "common/math/trigonometry.h"
#include "worker/kernels/reference/families.h"
#include "worker/kernels/reference/loops.h"

namespace lockstep::device::reference {
namespace {

// dY goes to the operand for which wins(a, b) holds, half of it to each at a tie.
template <typename T, typename Wins>
void ExtremumGrad(const HostCall& call, Wins wins) {
  const T* dy = call.in<T>(0);
  T* da = call.out<T>(0);
  T* db = call.out<T>(1);
  const int64_t count = NumElements(call.out_shape(0));
  BroadcastCursor of_a(call.out_shape(0), call.in_shape(1)), of_b(call.out_shape(0), call.in_shape(2));
  for (int64_t i = 0; i < count; ++i, of_a.Next(), of_b.Next()) {
    const T a = call.in<T>(1)[of_a.index()];
    const T b = call.in<T>(2)[of_b.index()];
    const T half = dy[i] * T(0.5);
    da[i] = wins(a, b) ? dy[i] : a == b ? half : T(0);
    if (db != nullptr) db[i] = wins(b, a) ? dy[i] : a == b ? half : T(0);
  }
}

// Functions of one number that are computed in double.
template <typename T>
HostFunction AngleFunction(OpType type) {
  switch (type) {
    case OpType::kTan:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return static_cast<T>(TanOf(x)); }); };
    case OpType::kAsin:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return static_cast<T>(AsinOf(x)); }); };
    case OpType::kAcos:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return static_cast<T>(AcosOf(x)); }); };
    case OpType::kAtan:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return static_cast<T>(AtanOf(x)); }); };
    case OpType::kSinh:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return static_cast<T>(SinhOf(x)); }); };
    case OpType::kCosh:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return static_cast<T>(CoshOf(x)); }); };
    case OpType::kAsinh:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return static_cast<T>(AsinhOf(x)); }); };
    case OpType::kAcosh:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return static_cast<T>(AcoshOf(x)); }); };
    case OpType::kAtanh:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return static_cast<T>(AtanhOf(x)); }); };
    case OpType::kAsinGrad:
      return
          [](const HostCall& call) { Gradient<T>(call, [](T dy, T x) { return dy * static_cast<T>(AsinSlope(x)); }); };
    case OpType::kAtanGrad:
      return
          [](const HostCall& call) { Gradient<T>(call, [](T dy, T x) { return dy * static_cast<T>(AtanSlope(x)); }); };
    case OpType::kAsinhGrad:
      return
          [](const HostCall& call) { Gradient<T>(call, [](T dy, T x) { return dy * static_cast<T>(AsinhSlope(x)); }); };
    case OpType::kAcoshGrad:
      return
          [](const HostCall& call) { Gradient<T>(call, [](T dy, T x) { return dy * static_cast<T>(AcoshSlope(x)); }); };
    case OpType::kAtanhGrad:
      return
          [](const HostCall& call) { Gradient<T>(call, [](T dy, T x) { return dy * static_cast<T>(AtanhSlope(x)); }); };
    default:
      return nullptr;
  }
}

}  // namespace

template <typename T>
HostFunction MathFunction(OpType type) {
  switch (type) {
    case OpType::kReciprocal:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return T(1) / x; }); };
    case OpType::kSqrt:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return SquareRoot(x); }); };
    case OpType::kExp:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return Exp(x); }); };
    case OpType::kLog:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return Log(x); }); };
    case OpType::kErf:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return Erf(x); }); };
    case OpType::kErfGrad:
      return [](const HostCall& call) {
        Gradient<T>(call, [](T dy, T x) { return dy * T(0x1.20dd750429b6dp+0) * Exp(-x * x); });
      };
    case OpType::kSin:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return Sin(x); }); };
    case OpType::kCos:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return Cos(x); }); };
    case OpType::kFloor:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return Floor(x); }); };
    case OpType::kCeil:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return Ceil(x); }); };
    case OpType::kRound:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return RoundEven(x); }); };
    case OpType::kMinGrad:
      return [](const HostCall& call) { ExtremumGrad<T>(call, [](T a, T b) { return a < b; }); };
    case OpType::kMaxGrad:
      return [](const HostCall& call) { ExtremumGrad<T>(call, [](T a, T b) { return a > b; }); };
    default:
      return AngleFunction<T>(type);
  }
}

template HostFunction MathFunction<float>(OpType);
template HostFunction MathFunction<double>(OpType);

}  // namespace lockstep::device::reference
