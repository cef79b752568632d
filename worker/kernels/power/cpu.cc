#include "common/math/math.h"
#include "common/math/power.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/own_loops.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

// The only element of input i.
float NumberOf(const HostCall& call, size_t i) {
  switch (call.input_infos[i].dtype) {
    case DType::kF32:
      return *call.in<float>(i);
    case DType::kI32:
      return static_cast<float>(*call.in<int32_t>(i));
    default:
      return static_cast<float>(*call.in<int64_t>(i));
  }
}

// X to the power of one number: squares, cubes and roots as such.
void Power(const HostCall& call) {
  const float exponent = NumberOf(call, 1);
  if (exponent == 2.0f) {
    Unary(call, [](float x) { return x * x; });
  } else if (exponent == 3.0f) {
    Unary(call, [](float x) { return x * x * x; });
  } else if (exponent == 0.5f) {
    Unary(call, [](float x) { return SquareRoot(x); });
  } else {
    Unary(call, [exponent](float x) { return Pow(x, exponent); });
  }
}

// dA = dY * exponent * A^(exponent - 1)
void PowerGrad(const HostCall& call) {
  const float exponent = NumberOf(call, 2);
  if (exponent == 2.0f) {
    Same(call, [](float dy, float a) { return dy * (2.0f * a); });
  } else if (exponent == 3.0f) {
    Same(call, [](float dy, float a) { return dy * (3.0f * (a * a)); });
  } else if (exponent == 0.5f) {
    Same(call, [](float dy, float a) { return dy * (0.5f / SquareRoot(a)); });
  } else if (exponent == 0.0f) {
    Same(call, [](float, float) { return 0.0f; });
  } else {
    Same(call, [exponent](float dy, float a) { return dy * (exponent * Pow(a, exponent - 1.0f)); });
  }
}

bool IsOneNumber(const Operand& exponent) {
  return NumElements(exponent.shape) == 1 &&
         (exponent.dtype == DType::kF32 || exponent.dtype == DType::kI32 || exponent.dtype == DType::kI64);
}

}  // namespace

OwnFunction OwnPower(const KernelRequest& request) {
  const auto& inputs = request.inputs;
  const Shape& y = request.outputs[0].shape;
  if (request.node->op == OpType::kPow && inputs[0].shape == y && IsOneNumber(inputs[1])) return {&Power, "own:power"};
  if (request.node->op == OpType::kPowGrad && inputs[1].shape == y && request.outputs.size() == 1 &&
      IsOneNumber(inputs[2])) {
    return {&PowerGrad, "own:power"};
  }
  return {};
}

}  // namespace lockstep::device::cpu::LS_CODE
