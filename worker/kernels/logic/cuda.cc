// Comparisons, logic, tests of single numbers, and casts.
#include <limits>

#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/convert.h"
#include "worker/kernels/cuda/broadcast_map.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"

namespace lockstep::device::cuda {
namespace {

struct Plain {
  explicit Plain(const DeviceCall&) {}
};

#define LS_COMPARISON(Name, expression)                          \
  template <typename T>                                          \
  struct Name : Plain {                                          \
    using Plain::Plain;                                          \
    LS_HD bool operator()(T a, T b) const { return expression; } \
  };

LS_COMPARISON(EqualOp, a == b)
LS_COMPARISON(GreaterOp, a > b)
LS_COMPARISON(GreaterOrEqualOp, a >= b)
LS_COMPARISON(LessOp, a < b)
LS_COMPARISON(LessOrEqualOp, a <= b)
LS_COMPARISON(AndOp, a&& b)
LS_COMPARISON(OrOp, a || b)
LS_COMPARISON(XorOp, a != b)
#undef LS_COMPARISON

struct NotOp {
  LS_HD bool operator()(bool x) const { return !x; }
};
template <typename T>
struct IsNanOp {
  LS_HD bool operator()(T x) const { return x != x; }
};
template <typename T>
struct IsInfOp {
  LS_HD bool operator()(T x) const {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return (positive && x == kInfinity) || (negative && x == -kInfinity);
  }
  bool positive;
  bool negative;
};
template <typename From, typename To>
struct CastOp {
  LS_HD To operator()(From x) const { return Convert<From, To>(x); }
};

template <template <typename> typename Formula>
OwnFunction Comparison(const KernelRequest& request) {
  return ForNumberOrBool(request.inputs[0].dtype, []<typename T>(Type<T>) -> OwnFunction {
    return {&BroadcastTwo<T, T, bool, Formula<T>>, "broadcast"};
  });
}

template <template <typename> typename Formula>
OwnFunction Logic(const KernelRequest& request) {
  if (request.inputs[0].dtype != DType::kBool) return {.refusal = kOtherType};
  return {&BroadcastTwo<bool, bool, bool, Formula<bool>>, "broadcast"};
}

absl::Status Not(const DeviceCall& call, StreamHandle stream) {
  return Map(stream, NumElements(call.out_shape(0)), NotOp(), call.out<bool>(0), call.in<bool>(0));
}

template <typename T>
absl::Status IsNan(const DeviceCall& call, StreamHandle stream) {
  return Map(stream, NumElements(call.out_shape(0)), IsNanOp<T>(), call.out<bool>(0), call.in<T>(0));
}

template <typename T>
absl::Status IsInf(const DeviceCall& call, StreamHandle stream) {
  const auto& detect = call.attrs<IsInfAttributes>();
  return Map(stream, NumElements(call.out_shape(0)), IsInfOp<T>{detect.detect_positive, detect.detect_negative},
             call.out<bool>(0), call.in<T>(0));
}

template <typename From, typename To>
absl::Status Cast(const DeviceCall& call, StreamHandle stream) {
  return Map(stream, NumElements(call.out_shape(0)), CastOp<From, To>(), call.out<To>(0), call.in<From>(0));
}

template <typename Make>
OwnFunction ForCastable(DType dtype, Make make) {
  return dtype == DType::kBF16 ? make(Type<Bf16>()) : ForNumberOrBool(dtype, make);
}

template <typename From>
OwnFunction CastFrom(DType to) {
  return ForCastable(to, []<typename To>(Type<To>) -> OwnFunction { return {&Cast<From, To>, "map"}; });
}

// To or from I16, U16 or U32, which F32, I32 and I64 alone are cast from and to.
template <typename Rare>
OwnFunction CastRare(bool from_rare, DType other) {
  const auto cast = [from_rare]<typename T>(Type<T>) -> OwnFunction {
    if (from_rare) return {&Cast<Rare, T>, "map"};
    return {&Cast<T, Rare>, "map"};
  };
  switch (other) {
    case DType::kF32:
      return cast(Type<float>());
    case DType::kI32:
      return cast(Type<int32_t>());
    case DType::kI64:
      return cast(Type<int64_t>());
    default:
      return {.refusal = kOtherType};
  }
}

OwnFunction OwnCast(DType from, DType to) {
  for (const bool from_rare : {true, false}) {
    const DType other = from_rare ? to : from;
    switch (from_rare ? from : to) {
      case DType::kI16:
        return CastRare<int16_t>(from_rare, other);
      case DType::kU16:
        return CastRare<uint16_t>(from_rare, other);
      case DType::kU32:
        return CastRare<uint32_t>(from_rare, other);
      default:
        break;
    }
  }
  return ForCastable(from, [to]<typename From>(Type<From>) { return CastFrom<From>(to); });
}

OwnFunction OwnComparison(const KernelRequest& request) {
  if (!FitsTwo(request)) return {.refusal = kManyDimensions};
  switch (request.node->op) {
    case OpType::kEqual:
      return Comparison<EqualOp>(request);
    case OpType::kGreater:
      return Comparison<GreaterOp>(request);
    case OpType::kGreaterOrEqual:
      return Comparison<GreaterOrEqualOp>(request);
    case OpType::kLess:
      return Comparison<LessOp>(request);
    case OpType::kLessOrEqual:
      return Comparison<LessOrEqualOp>(request);
    case OpType::kAnd:
      return Logic<AndOp>(request);
    case OpType::kOr:
      return Logic<OrOp>(request);
    default:
      return Logic<XorOp>(request);
  }
}

}  // namespace

OwnFunction OwnLogic(const KernelRequest& request) {
  const DType from = request.inputs.empty() ? DType::kF32 : request.inputs[0].dtype;
  switch (request.node->op) {
    case OpType::kEqual:
    case OpType::kGreater:
    case OpType::kGreaterOrEqual:
    case OpType::kLess:
    case OpType::kLessOrEqual:
    case OpType::kAnd:
    case OpType::kOr:
    case OpType::kXor:
      return OwnComparison(request);
    case OpType::kNot:
      return {&Not, "map"};
    case OpType::kIsNaN:
      return ForFloating(from, []<typename T>(Type<T>) -> OwnFunction { return {&IsNan<T>, "map"}; });
    case OpType::kIsInf:
      return ForFloating(from, []<typename T>(Type<T>) -> OwnFunction { return {&IsInf<T>, "map"}; });
    case OpType::kCast:
      return OwnCast(from, request.outputs[0].dtype);
    default:
      return {};
  }
}

}  // namespace lockstep::device::cuda
