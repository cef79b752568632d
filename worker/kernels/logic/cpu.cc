#include <cstdint>
#include <limits>

#include "worker/kernels/arithmetic/cpu_loops.h"
#include "worker/kernels/convert.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/own_loops.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr char kName[] = "own:logic";  // outlives every OwnFunction

// Bools are bytes, 0 or 1: loops over bools do not become vector code.
template <typename T, typename Op>
void Broadcast(const HostCall& call, Op op) {
  BroadcastPairs<T, uint8_t>(call, kGrain, [op](T a, T b) { return static_cast<uint8_t>(op(a, b) ? 1 : 0); });
}

template <typename From, typename To, typename Op>
void Each(const HostCall& call, Op op) {
  const From* x = call.in<From>(0);
  To* y = call.out<To>(0);
  ParallelFor(call.out_elements(), kGrain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) y[i] = op(x[i]);
  });
}

template <typename T>
HostFunction Comparison(OpType op) {
  switch (op) {
    case OpType::kEqual:
      return [](const HostCall& call) { Broadcast<T>(call, [](T a, T b) { return a == b; }); };
    case OpType::kGreater:
      return [](const HostCall& call) { Broadcast<T>(call, [](T a, T b) { return a > b; }); };
    case OpType::kGreaterOrEqual:
      return [](const HostCall& call) { Broadcast<T>(call, [](T a, T b) { return a >= b; }); };
    case OpType::kLess:
      return [](const HostCall& call) { Broadcast<T>(call, [](T a, T b) { return a < b; }); };
    case OpType::kLessOrEqual:
      return [](const HostCall& call) { Broadcast<T>(call, [](T a, T b) { return a <= b; }); };
    default:
      return nullptr;
  }
}

HostFunction Connective(OpType op) {
  switch (op) {
    case OpType::kAnd:
      return [](const HostCall& call) { Broadcast<uint8_t>(call, [](uint8_t a, uint8_t b) { return (a & b) != 0; }); };
    case OpType::kOr:
      return [](const HostCall& call) { Broadcast<uint8_t>(call, [](uint8_t a, uint8_t b) { return (a | b) != 0; }); };
    case OpType::kXor:
      return [](const HostCall& call) { Broadcast<uint8_t>(call, [](uint8_t a, uint8_t b) { return a != b; }); };
    default:
      return nullptr;
  }
}

// Bools are bytes here, 0 or 1, and read as numbers.
template <typename From, typename To>
HostFunction Converted() {
  return [](const HostCall& call) { Each<From, To>(call, [](From x) { return Convert<From, To>(x); }); };
}

template <typename From>
HostFunction ToBool() {
  return [](const HostCall& call) {
    Each<From, uint8_t>(call, [](From x) { return static_cast<uint8_t>(x != From(0) ? 1 : 0); });
  };
}

template <typename From>
HostFunction CastFrom(DType to) {
  switch (to) {
    case DType::kF32:
      return Converted<From, float>();
    case DType::kI64:
      return Converted<From, int64_t>();
    case DType::kI32:
      return Converted<From, int32_t>();
    case DType::kBool:
      return ToBool<From>();
    default:
      return nullptr;
  }
}

template <typename From>
HostFunction CastToRare(DType to) {
  switch (to) {
    case DType::kI16:
      return Converted<From, int16_t>();
    case DType::kU16:
      return Converted<From, uint16_t>();
    case DType::kU32:
      return Converted<From, uint32_t>();
    default:
      return CastFrom<From>(to);
  }
}

HostFunction CastOf(DType from, DType to) {
  switch (from) {
    case DType::kF32:
      return CastToRare<float>(to);
    case DType::kI64:
      return CastToRare<int64_t>(to);
    case DType::kI32:
      return CastToRare<int32_t>(to);
    case DType::kBool:
    case DType::kU8:
      return CastFrom<uint8_t>(to);
    case DType::kI16:
      return CastFrom<int16_t>(to);
    case DType::kU16:
      return CastFrom<uint16_t>(to);
    case DType::kU32:
      return CastFrom<uint32_t>(to);
    default:
      return nullptr;
  }
}

HostFunction TestOf(const KernelRequest& request) {
  if (request.inputs[0].dtype != DType::kF32) return nullptr;
  if (request.node->op == OpType::kIsNaN) {
    return [](const HostCall& call) {
      Each<float, uint8_t>(call, [](float x) { return static_cast<uint8_t>(x != x ? 1 : 0); });
    };
  }
  return [](const HostCall& call) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const auto& detect = call.attrs<IsInfAttributes>();
    const float above = detect.detect_positive ? kInfinity : 0.0f;
    const float below = detect.detect_negative ? -kInfinity : 0.0f;
    Each<float, uint8_t>(
        call, [=](float x) { return static_cast<uint8_t>(x != 0.0f && (x == above || x == below) ? 1 : 0); });
  };
}

}  // namespace

OwnFunction OwnLogic(const KernelRequest& request) {
  const OpType op = request.node->op;
  const auto& inputs = request.inputs;
  const auto named = [](HostFunction function) {
    return function == nullptr ? OwnFunction{.refusal = kOtherType} : OwnFunction{function, kName};
  };
  if (op == OpType::kCast) return named(CastOf(inputs[0].dtype, request.outputs[0].dtype));
  if (op == OpType::kNot) {
    return {[](const HostCall& call) {
              Each<uint8_t, uint8_t>(call, [](uint8_t x) { return static_cast<uint8_t>(1 - x); });
            },
            kName};
  }
  if (op == OpType::kIsNaN || op == OpType::kIsInf) return named(TestOf(request));
  HostFunction function = nullptr;
  if (inputs[0].dtype == DType::kF32) function = Comparison<float>(op);
  if (inputs[0].dtype == DType::kI64) function = Comparison<int64_t>(op);
  if (inputs[0].dtype == DType::kI32) function = Comparison<int32_t>(op);
  if (inputs[0].dtype == DType::kBool) function = Connective(op);
  if (function == nullptr) {
    if (Comparison<float>(op) == nullptr && Connective(op) == nullptr) return {};
    return {.refusal = kOtherType};
  }
  if (!BroadcastLoops<2>(request.outputs[0].shape, {&inputs[0].shape, &inputs[1].shape}).fits())
    return {.refusal = kManyDimensions};
  return {function, kName};
}

}  // namespace lockstep::device::cpu::LS_CODE
