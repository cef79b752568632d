#include <algorithm>
#include <limits>

#include "common/math/math.h"
#include "common/math/power.h"
#include "common/math/power_formula.h"
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

// y[i] = x[i] to the power of `exponent`, which is finite and not 0. Blocks of positive finite numbers become vector
// code.
void Powers(const float* x, float exponent, float* y, int64_t count) {
  constexpr int64_t kAtOnce = 256;
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (int64_t first = 0; first < count; first += kAtOnce) {
    const int64_t part = std::min(kAtOnce, count - first);
    const float* const from = x + first;
    float* const to = y + first;
    bool plain = true;
    for (int64_t i = 0; i < part; ++i) plain &= from[i] > 0.0f && from[i] <= kLargest;
    if (plain) {
#pragma GCC ivdep
      for (int64_t i = 0; i < part; ++i) {
        to[i] = static_cast<float>(math_internal::PlainPow(double{from[i]}, double{exponent}));
      }
    } else {
      for (int64_t i = 0; i < part; ++i) to[i] = Pow(from[i], exponent);
    }
  }
}

bool IsPlain(float exponent) { return exponent - exponent == 0.0f && exponent != 0.0f; }

// X to the power of one number: squares, cubes and roots as such.
void Power(const HostCall& call) {
  const float exponent = NumberOf(call, 1);
  if (exponent == 2.0f) {
    Unary(call, [](float x) { return x * x; });
  } else if (exponent == 3.0f) {
    Unary(call, [](float x) { return x * x * x; });
  } else if (exponent == 0.5f) {
    Unary(call, [](float x) { return SquareRoot(x); });
  } else if (IsPlain(exponent)) {
    const float* const x = call.in<float>(0);
    float* const y = call.out<float>(0);
    ParallelFor(call.out_elements(), kGrain,
                [=](int64_t begin, int64_t end) { Powers(x + begin, exponent, y + begin, end - begin); });
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
  } else if (IsPlain(exponent - 1.0f)) {
    const float* const dy = call.in<float>(0);
    const float* const a = call.in<float>(1);
    float* const da = call.out<float>(0);
    ParallelFor(call.out_elements(), kGrain, [=](int64_t begin, int64_t end) {
      constexpr int64_t kAtOnce = 256;
      float powers[kAtOnce];  // dA may lie where dY or A does
      for (int64_t first = begin; first < end; first += kAtOnce) {
        const int64_t part = std::min(kAtOnce, end - first);
        Powers(a + first, exponent - 1.0f, powers, part);
        for (int64_t i = 0; i < part; ++i) da[first + i] = dy[first + i] * (exponent * powers[i]);
      }
    });
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
  if (request.node->op != OpType::kPow && request.node->op != OpType::kPowGrad) return {};
  return {.refusal = "serves one exponent for all elements, without a gradient of its own"};
}

}  // namespace lockstep::device::cpu::LS_CODE
