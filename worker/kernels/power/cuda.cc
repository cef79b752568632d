// Powers and their gradients.
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/arithmetic/arithmetic.h"
#include "worker/kernels/cuda/broadcast_map.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"

namespace lockstep::device::cuda {
namespace {

template <typename T, typename Exponent>
struct PowOp {
  explicit PowOp(const DeviceCall&) {}
  LS_HD T operator()(T base, Exponent exponent) const { return Power(base, exponent); }
};

template <typename T, typename Exponent>
struct BaseGradOp {
  LS_HD T operator()(T dy, T base, Exponent exponent) const {
    return static_cast<T>(PowerSlopeOfBase(dy, base, static_cast<double>(exponent)));
  }
};
template <typename T, typename Exponent>
struct ExponentGradOp {
  LS_HD T operator()(T dy, T base, Exponent exponent) const {
    return static_cast<T>(PowerSlopeOfExponent(dy, base, static_cast<double>(exponent)));
  }
};

template <typename T, typename Exponent>
absl::Status PowGrad(const DeviceCall& call, StreamHandle stream) {
  const auto rows = RowsOfInputs<3>(call.out_shape(0), call.input_infos, {0, 1, 2});
  const T* dy = call.in<T>(0);
  const T* base = call.in<T>(1);
  const Exponent* exponent = call.in<Exponent>(2);
  if (T* db = call.out<T>(1); db != nullptr) {
    LS_RETURN_IF_ERROR(BroadcastMap(stream, rows, ExponentGradOp<T, Exponent>(), db, dy, base, exponent));
  }
  return BroadcastMap(stream, rows, BaseGradOp<T, Exponent>(), call.out<T>(0), dy, base, exponent);
}

// make(Type<T>()) for the types that powers have.
template <typename Make>
OwnFunction ForExponent(DType dtype, Make make) {
  switch (dtype) {
    case DType::kI64:
      return make(Type<int64_t>());
    case DType::kI32:
      return make(Type<int32_t>());
    default:
      return ForFloating(dtype, make);
  }
}

template <typename T>
OwnFunction PowerOf(DType exponent) {
  return ForExponent(exponent, []<typename Exponent>(Type<Exponent>) -> OwnFunction {
    return {&BroadcastTwo<T, Exponent, T, PowOp<T, Exponent>>, "broadcast"};
  });
}

template <typename T>
OwnFunction PowGradOf(DType exponent) {
  return ForExponent(exponent, []<typename Exponent>(Type<Exponent>) -> OwnFunction {
    return {&PowGrad<T, Exponent>, "broadcast"};
  });
}

}  // namespace

OwnFunction OwnPower(const KernelRequest& request) {
  const Operand& output = request.outputs[0];
  if (request.node->op == OpType::kPow) {
    if (!FitsTwo(request)) return {.refusal = kManyDimensions};
    return ForExponent(output.dtype, [&]<typename T>(Type<T>) { return PowerOf<T>(request.inputs[1].dtype); });
  }
  if (request.node->op == OpType::kPowGrad) {
    if (!RowsOfInputs<3>(output.shape, request.inputs, {0, 1, 2}).fits) return {.refusal = kManyDimensions};
    return ForFloating(output.dtype, [&]<typename T>(Type<T>) { return PowGradOf<T>(request.inputs[2].dtype); });
  }
  return {};
}

}  // namespace lockstep::device::cuda
