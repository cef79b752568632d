#include "worker/kernels/arithmetic/arithmetic.h"
#include "worker/kernels/reference/element_types.h"
#include "worker/kernels/reference/families.h"
#include "worker/kernels/reference/loops.h"

namespace lockstep::device::reference {
namespace {

template <typename T, typename Exponent>
void PowLoop(const HostCall& call) {
  T* y = call.out<T>(0);
  const int64_t count = NumElements(call.out_shape(0));
  BroadcastCursor of_base(call.out_shape(0), call.in_shape(0)), of_exponent(call.out_shape(0), call.in_shape(1));
  for (int64_t i = 0; i < count; ++i, of_base.Next(), of_exponent.Next()) {
    y[i] = Power(call.in<T>(0)[of_base.index()], call.in<Exponent>(1)[of_exponent.index()]);
  }
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
    da[i] = static_cast<T>(PowerSlopeOfBase(dy[i], a, b));
    if (db != nullptr) db[i] = static_cast<T>(PowerSlopeOfExponent(dy[i], a, b));
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
