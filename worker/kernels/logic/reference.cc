#include <cstring>
#include <limits>

#include "worker/kernels/convert.h"
#include "worker/kernels/reference/element_types.h"
#include "worker/kernels/reference/families.h"
#include "worker/kernels/reference/loops.h"

namespace lockstep::device::reference {
namespace {

template <typename T>
HostFunction Comparison(OpType type) {
  switch (type) {
    case OpType::kEqual:
      return [](const HostCall& call) { Binary<T, bool>(call, [](T a, T b) { return a == b; }); };
    case OpType::kGreater:
      return [](const HostCall& call) { Binary<T, bool>(call, [](T a, T b) { return a > b; }); };
    case OpType::kGreaterOrEqual:
      return [](const HostCall& call) { Binary<T, bool>(call, [](T a, T b) { return a >= b; }); };
    case OpType::kLess:
      return [](const HostCall& call) { Binary<T, bool>(call, [](T a, T b) { return a < b; }); };
    default:
      return [](const HostCall& call) { Binary<T, bool>(call, [](T a, T b) { return a <= b; }); };
  }
}

template <typename T>
void IsInf(const HostCall& call) {
  const auto& detect = call.attrs<IsInfAttributes>();
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  Unary<T, bool>(call, [&](T x) {
    return (detect.detect_positive && x == kInfinity) || (detect.detect_negative && x == -kInfinity);
  });
}

template <typename Make>
HostFunction ForCastable(DType dtype, Make make) {
  return dtype == DType::kBF16 ? make.template operator()<Bf16>() : ForNumberOrBool(dtype, make);
}

// I16, U16 and U32, and what they are cast from and to.
template <typename Make>
HostFunction ForRareInteger(DType dtype, Make make) {
  return dtype == DType::kI16   ? make.template operator()<int16_t>()
         : dtype == DType::kU16 ? make.template operator()<uint16_t>()
         : dtype == DType::kU32 ? make.template operator()<uint32_t>()
                                : nullptr;
}
template <typename Make>
HostFunction ForItsPartner(DType dtype, Make make) {
  return dtype == DType::kF32   ? make.template operator()<float>()
         : dtype == DType::kI32 ? make.template operator()<int32_t>()
         : dtype == DType::kI64 ? make.template operator()<int64_t>()
                                : nullptr;
}

template <typename From, typename To>
HostFunction Converted() {
  return [](const HostCall& call) { Unary<From, To>(call, [](From x) { return Convert<From, To>(x); }); };
}

HostFunction CastFunction(DType from, DType to) {
  const HostFunction of_rare = ForRareInteger(
      from, [to]<typename From>() { return ForItsPartner(to, []<typename To>() { return Converted<From, To>(); }); });
  const HostFunction to_rare = ForRareInteger(
      to, [from]<typename To>() { return ForItsPartner(from, []<typename From>() { return Converted<From, To>(); }); });
  if (of_rare != nullptr || to_rare != nullptr) return of_rare != nullptr ? of_rare : to_rare;
  return ForCastable(
      from, [to]<typename From>() { return ForCastable(to, []<typename To>() { return Converted<From, To>(); }); });
}

// T is any type of the size of an element.
template <typename T>
void Where(const HostCall& call) {
  T* y = call.out<T>(0);
  const int64_t count = NumElements(call.out_shape(0));
  const Shape& to = call.out_shape(0);
  BroadcastCursor condition(to, call.in_shape(0)), of_x(to, call.in_shape(1)), of_y(to, call.in_shape(2));
  for (int64_t i = 0; i < count; ++i, condition.Next(), of_x.Next(), of_y.Next()) {
    y[i] = call.in<bool>(0)[condition.index()] ? call.in<T>(1)[of_x.index()] : call.in<T>(2)[of_y.index()];
  }
}

HostFunction WhereFunction(DType dtype) {
  switch (DTypeSize(dtype)) {
    case 1:
      return &Where<uint8_t>;
    case 2:
      return &Where<uint16_t>;
    case 4:
      return &Where<uint32_t>;
    default:
      return &Where<uint64_t>;
  }
}

template <typename T>
void WhereGrad(const HostCall& call) {
  const T* dy = call.in<T>(0);
  const int64_t count = NumElements(call.out_shape(0));
  BroadcastCursor condition(call.out_shape(0), call.in_shape(1));
  for (int64_t i = 0; i < count; ++i, condition.Next()) {
    const bool holds = call.in<bool>(1)[condition.index()];
    call.out<T>(0)[i] = holds ? dy[i] : T(0);
    if (T* other = call.out<T>(1); other != nullptr) other[i] = holds ? T(0) : dy[i];
  }
}

void Identity(const HostCall& call) {
  const size_t bytes =
      static_cast<size_t>(NumElements(call.out_shape(0))) * static_cast<size_t>(DTypeSize(call.output_infos[0].dtype));
  if (bytes > 0 && call.outputs[0] != call.inputs[0]) std::memcpy(call.outputs[0], call.inputs[0], bytes);
}

}  // namespace

HostFunction LogicFunction(const KernelRequest& request) {
  const OpType type = request.node->op;
  const DType from = request.inputs[0].dtype;
  const DType to = request.outputs[0].dtype;
  switch (type) {
    case OpType::kEqual:
    case OpType::kGreater:
    case OpType::kGreaterOrEqual:
    case OpType::kLess:
    case OpType::kLessOrEqual:
      return ForNumberOrBool(from, [type]<typename T>() { return Comparison<T>(type); });
    case OpType::kAnd:
      return [](const HostCall& call) { Binary<bool>(call, [](bool a, bool b) { return a && b; }); };
    case OpType::kOr:
      return [](const HostCall& call) { Binary<bool>(call, [](bool a, bool b) { return a || b; }); };
    case OpType::kXor:
      return [](const HostCall& call) { Binary<bool>(call, [](bool a, bool b) { return a != b; }); };
    case OpType::kNot:
      return [](const HostCall& call) { Unary<bool>(call, [](bool x) { return !x; }); };
    case OpType::kIsNaN:
      return ForFloating(from, []<typename T>() -> HostFunction {
        return [](const HostCall& call) { Unary<T, bool>(call, [](T x) { return x != x; }); };
      });
    case OpType::kIsInf:
      return ForFloating(from, []<typename T>() -> HostFunction { return &IsInf<T>; });
    case OpType::kCast:
      return CastFunction(from, to);
    case OpType::kWhere:
      return WhereFunction(to);
    case OpType::kWhereGrad:
      return ForFloating(to, []<typename T>() -> HostFunction { return &WhereGrad<T>; });
    case OpType::kIdentity:
      return &Identity;
    default:
      return nullptr;
  }
}

}  // namespace lockstep::device::reference
