// Arithmetic over operands that broadcast, the choice between two of them, and their gradients.
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/activation/activation.h"
#include "worker/kernels/arithmetic/arithmetic.h"
#include "worker/kernels/cuda/broadcast_map.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"

namespace lockstep::device::cuda {
namespace {

struct Stateless {
  Stateless() = default;
  explicit Stateless(const DeviceCall&) {}
};

// A formula over two elements of one type.
#define LS_FORMULA(Name, expression)                          \
  template <typename T>                                       \
  struct Name : Stateless {                                   \
    using Stateless::Stateless;                               \
    LS_HD T operator()(T a, T b) const { return expression; } \
  };

LS_FORMULA(AddOp, Add(a, b))
LS_FORMULA(SubOp, Sub(a, b))
LS_FORMULA(MulOp, Mul(a, b))
LS_FORMULA(DivOp, Div(a, b))
LS_FORMULA(RemainderOp, RemainderOf(a, b))
LS_FORMULA(ModulusOp, Modulus(a, b))
LS_FORMULA(PReluOp, LeakyRelu(a, b))
#undef LS_FORMULA

template <template <typename> typename Formula>
OwnFunction OfTwo(const KernelRequest& request) {
  if (!FitsTwo(request)) return {.refusal = kManyDimensions};
  return ForNumberOrBf16(request.outputs[0].dtype, []<typename T>(Type<T>) -> OwnFunction {
    return {&BroadcastTwo<T, T, T, Formula<Computed<T>>>, "broadcast"};
  });
}

template <typename T>
struct AddReluOp : Stateless {
  using Stateless::Stateless;
  LS_HD T operator()(T a, T b) const {
    const T sum = Add(a, b);
    return sum < T(0) ? T(0) : sum;
  }
};

OwnFunction AddOf(const KernelRequest& request) {
  if (request.epilogue == Epilogue::kNone || !FitsTwo(request)) return OfTwo<AddOp>(request);
  return ForFloatingOrBf16(request.outputs[0].dtype, []<typename T>(Type<T>) -> OwnFunction {
    return {&BroadcastTwo<T, T, T, AddReluOp<Computed<T>>>, "broadcast", 0, Epilogue::kRelu};
  });
}

template <typename T>
struct SmallerOp {
  LS_HD T operator()(T a, T b) const { return Smaller(a, b); }
  LS_HD T operator()(T a, T b, T c) const { return Smaller(Smaller(a, b), c); }
};
template <typename T>
struct LargerOp {
  LS_HD T operator()(T a, T b) const { return Larger(a, b); }
  LS_HD T operator()(T a, T b, T c) const { return Larger(Larger(a, b), c); }
};

// Three operands at a time, from the left. The last result alone goes to Y, which may lie at any of the operands.
template <typename T, typename Formula>
absl::Status Extremum(const DeviceCall& call, StreamHandle stream) {
  const Shape& to = call.out_shape(0);
  const size_t count = call.inputs.size();
  T* y = call.out<T>(0);
  if (count == 1) {
    return y == call.in<T>(0) ? absl::OkStatus()
                              : CopyOnDevice(stream, call.outputs[0], call.inputs[0],
                                             static_cast<size_t>(NumElements(to)) * sizeof(T));
  }
  auto* scratch = reinterpret_cast<T*>(call.workspace);
  const T* left = call.in<T>(0);
  const Shape* left_shape = &call.in_shape(0);
  for (size_t next = 1; next < count;) {
    const size_t taken = count - next == 1 ? 1 : 2;
    T* into = next + taken == count ? y : scratch;
    if (taken == 1) {
      const auto rows = BroadcastRowsOf<2>(to, {left_shape, &call.in_shape(next)});
      LS_RETURN_IF_ERROR(BroadcastMap(stream, rows, Formula(), into, left, call.in<T>(next)));
    } else {
      const auto rows = BroadcastRowsOf<3>(to, {left_shape, &call.in_shape(next), &call.in_shape(next + 1)});
      LS_RETURN_IF_ERROR(BroadcastMap(stream, rows, Formula(), into, left, call.in<T>(next), call.in<T>(next + 1)));
    }
    left = into;
    left_shape = &to;
    next += taken;
  }
  return absl::OkStatus();
}

template <template <typename> typename Formula>
OwnFunction ExtremumOf(const KernelRequest& request) {
  const Operand& output = request.outputs[0];
  // Together the operands take at most as many dimensions as the result has.
  if (output.shape.size() > kMostOuter + 1) return {.refusal = kManyDimensions};
  const size_t scratch =
      request.inputs.size() > 3 ? static_cast<size_t>(NumElements(output.shape)) * DTypeSize(output.dtype) : 0;
  return ForNumberOrBf16(output.dtype, [scratch]<typename T>(Type<T>) -> OwnFunction {
    return {&Extremum<T, Formula<Computed<T>>>, "broadcast", scratch};
  });
}

// dY to the operand that wins, half of it to each at a tie.
template <typename T>
LS_HD T ShareOf(T dy, bool wins, bool tie) {
  return wins ? dy : tie ? dy * T(0.5) : T(0);
}
template <typename T>
struct SmallerShare {
  LS_HD T operator()(T dy, T own, T other) const { return ShareOf(dy, own < other, own == other); }
};
template <typename T>
struct LargerShare {
  LS_HD T operator()(T dy, T own, T other) const { return ShareOf(dy, own > other, own == other); }
};

template <typename T, typename Share>
absl::Status ExtremumGrad(const DeviceCall& call, StreamHandle stream) {
  const Shape& to = call.out_shape(0);
  const auto queue = [&](T* dx, size_t own, size_t other) {
    return BroadcastMap(stream, RowsOfInputs<3>(to, call.input_infos, {0, own, other}), Share(), dx, call.in<T>(0),
                        call.in<T>(own), call.in<T>(other));
  };
  if (T* db = call.out<T>(1); db != nullptr) LS_RETURN_IF_ERROR(queue(db, 2, 1));
  return queue(call.out<T>(0), 1, 2);
}

template <template <typename> typename Share>
OwnFunction ExtremumGradOf(const KernelRequest& request) {
  if (!RowsOfInputs<3>(request.outputs[0].shape, request.inputs, {0, 1, 2}).fits) return {.refusal = kManyDimensions};
  return ForFloatingOrBf16(request.outputs[0].dtype, []<typename T>(Type<T>) -> OwnFunction {
    return {&ExtremumGrad<T, Share<Computed<T>>>, "broadcast"};
  });
}

// Conditions are read as bytes, 0 or 1.
template <typename T>
struct WhereOp {
  LS_HD T operator()(uint8_t condition, T x, T y) const { return condition != 0 ? x : y; }
};
template <typename T>
struct WhereGradOp {
  LS_HD T operator()(T dy, uint8_t condition) const { return condition == holds ? dy : T(0); }
  uint8_t holds;
};

template <typename T>
absl::Status Where(const DeviceCall& call, StreamHandle stream) {
  return BroadcastMap(stream, RowsOfInputs<3>(call.out_shape(0), call.input_infos, {0, 1, 2}), WhereOp<T>(),
                      call.out<T>(0), call.in<uint8_t>(0), call.in<T>(1), call.in<T>(2));
}

template <typename T>
absl::Status WhereGrad(const DeviceCall& call, StreamHandle stream) {
  const auto rows = RowsOfInputs<2>(call.out_shape(0), call.input_infos, {0, 1});
  const auto queue = [&](T* dx, uint8_t holds) {
    return BroadcastMap(stream, rows, WhereGradOp<Computed<T>>{holds}, dx, call.in<T>(0), call.in<uint8_t>(1));
  };
  if (T* other = call.out<T>(1); other != nullptr) LS_RETURN_IF_ERROR(queue(other, 0));
  return queue(call.out<T>(0), 1);
}

template <typename T>
struct PReluGradOp {
  LS_HD T operator()(T dy, T x, T slope) const { return x > T(0) ? dy : dy * slope; }
};
template <typename T>
struct PReluSlopeGradOp {
  LS_HD T operator()(T dy, T x) const { return x > T(0) ? T(0) : dy * x; }
};

template <typename T>
absl::Status PReluGrad(const DeviceCall& call, StreamHandle stream) {
  if (T* slope = call.out<T>(1); slope != nullptr) {
    LS_RETURN_IF_ERROR(Map(stream, NumElements(call.out_shape(1)), PReluSlopeGradOp<Computed<T>>(), slope,
                           call.in<T>(0), call.in<T>(1)));
  }
  return BroadcastMap(stream, RowsOfInputs<3>(call.out_shape(0), call.input_infos, {0, 1, 2}),
                      PReluGradOp<Computed<T>>(), call.out<T>(0), call.in<T>(0), call.in<T>(1), call.in<T>(2));
}

OwnFunction OwnChoice(const KernelRequest& request) {
  const DType dtype = request.outputs[0].dtype;
  const Shape& to = request.outputs[0].shape;
  const size_t operands = request.node->op == OpType::kWhereGrad ? 2 : 3;
  if (!(operands == 2 ? FitsTwo(request) : RowsOfInputs<3>(to, request.inputs, {0, 1, 2}).fits))
    return {.refusal = kManyDimensions};
  switch (request.node->op) {
    case OpType::kWhere:
      return ForBits(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&Where<T>, "broadcast"}; });
    case OpType::kWhereGrad:
      return ForFloatingOrBf16(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&WhereGrad<T>, "broadcast"}; });
    default:
      return ForFloatingOrBf16(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&PReluGrad<T>, "broadcast"}; });
  }
}

OwnFunction PReluOf(const KernelRequest& request) {
  if (!FitsTwo(request)) return {.refusal = kManyDimensions};
  return ForFloatingOrBf16(request.outputs[0].dtype, []<typename T>(Type<T>) -> OwnFunction {
    return {&BroadcastTwo<T, T, T, PReluOp<Computed<T>>>, "broadcast"};
  });
}

}  // namespace

OwnFunction OwnBroadcast(const KernelRequest& request) {
  switch (request.node->op) {
    case OpType::kAdd:
      return AddOf(request);
    case OpType::kSub:
      return OfTwo<SubOp>(request);
    case OpType::kMul:
      return OfTwo<MulOp>(request);
    case OpType::kDiv:
      return OfTwo<DivOp>(request);
    case OpType::kMod:
      return AttributesOf<ModAttributes>(request).fmod ? OfTwo<RemainderOp>(request) : OfTwo<ModulusOp>(request);
    case OpType::kPRelu:
      return PReluOf(request);
    case OpType::kMin:
      return ExtremumOf<SmallerOp>(request);
    case OpType::kMax:
      return ExtremumOf<LargerOp>(request);
    case OpType::kMinGrad:
      return ExtremumGradOf<SmallerShare>(request);
    case OpType::kMaxGrad:
      return ExtremumGradOf<LargerShare>(request);
    case OpType::kWhere:
    case OpType::kWhereGrad:
    case OpType::kPReluGrad:
      return OwnChoice(request);
    default:
      return {};
  }
}

}  // namespace lockstep::device::cuda
