// Arithmetic of whole numbers of 32 and 64 bits, which count and index: it wraps around.
#include <cstdint>

#include "worker/kernels/arithmetic/arithmetic.h"
#include "worker/kernels/arithmetic/cpu_loops.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/own_loops.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

template <typename T, typename Op>
void Pairs(const HostCall& call, Op op) {
  BroadcastPairs<T, T>(call, kGrain, op);
}

template <typename T>
HostFunction FunctionOf(const Node& node) {
  switch (node.op) {
    case OpType::kAdd:
      return [](const HostCall& call) { Pairs<T>(call, [](T a, T b) { return Add(a, b); }); };
    case OpType::kSub:
      return [](const HostCall& call) { Pairs<T>(call, [](T a, T b) { return Sub(a, b); }); };
    case OpType::kMul:
      return [](const HostCall& call) { Pairs<T>(call, [](T a, T b) { return Mul(a, b); }); };
    case OpType::kDiv:
      return [](const HostCall& call) { Pairs<T>(call, [](T a, T b) { return Div(a, b); }); };
    case OpType::kMod:
      if (std::get_if<ModAttributes>(&node.attributes)->fmod) {
        return [](const HostCall& call) { Pairs<T>(call, [](T a, T b) { return RemainderOf(a, b); }); };
      }
      return [](const HostCall& call) { Pairs<T>(call, [](T a, T b) { return Modulus(a, b); }); };
    case OpType::kMin:
      return [](const HostCall& call) { Pairs<T>(call, [](T a, T b) { return a < b ? a : b; }); };
    case OpType::kMax:
      return [](const HostCall& call) { Pairs<T>(call, [](T a, T b) { return a > b ? a : b; }); };
    default:
      return nullptr;
  }
}

}  // namespace

OwnFunction OwnIntegers(const KernelRequest& request) {
  const DType dtype = request.outputs[0].dtype;
  if (dtype != DType::kI64 && dtype != DType::kI32) return {};
  if (request.inputs.size() != 2 || request.inputs[0].dtype != dtype) return {};
  const HostFunction function =
      dtype == DType::kI64 ? FunctionOf<int64_t>(*request.node) : FunctionOf<int32_t>(*request.node);
  if (function == nullptr) return {};
  if (!BroadcastLoops<2>(request.outputs[0].shape, {&request.inputs[0].shape, &request.inputs[1].shape}).fits()) {
    return {.refusal = kManyDimensions};
  }
  return {function, "own:integers"};
}

}  // namespace lockstep::device::cpu::LS_CODE
