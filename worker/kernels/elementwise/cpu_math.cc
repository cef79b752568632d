// Circular and hyperbolic functions, the smaller and the larger of several numbers, remainders.
#include <algorithm>
#include <array>
#include <cstdint>

#include "common/math/inverse.h"
#include "common/math/inverse_formula.h"
#include "common/math/trigonometry.h"
#include "worker/kernels/arithmetic/arithmetic.h"
#include "worker/kernels/arithmetic/cpu_loops.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/own_loops.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr char kName[] = "own:elementwise";
constexpr int64_t kAngleGrain = kGrain / 8;  // of functions that take as long as many additions

template <double (*function)(double)>
[[gnu::flatten]] float Rounded(float x) {
  return static_cast<float>(function(double{x}));
}

template <double (*function)(double)>
void Angle(const HostCall& call) {
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  ParallelFor(call.out_elements(), kAngleGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = Rounded<function>(x[i]);
  });
}

template <double (*slope)(double)>
void AngleGrad(const HostCall& call) {
  const float* dy = call.in<float>(0);
  const float* x = call.in<float>(1);
  float* dx = call.out<float>(0);
  ParallelFor(call.out_elements(), kAngleGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) dx[i] = dy[i] * Rounded<slope>(x[i]);
  });
}

HostFunction AngleFunction(OpType op) {
  switch (op) {
    case OpType::kSin:
      return &Angle<&Sin>;
    case OpType::kCos:
      return &Angle<&Cos>;
    case OpType::kTan:
      return &Angle<&Tan>;
    case OpType::kAsin:
      return &Angle<&Asin>;
    case OpType::kAcos:
      return &Angle<&Acos>;
    case OpType::kAtan:
      return &Angle<&Atan>;
    case OpType::kSinh:
      return &Angle<&SinhOf>;
    case OpType::kCosh:
      return &Angle<&CoshOf>;
    case OpType::kAsinh:
      return &Angle<&AsinhOf>;
    case OpType::kAcosh:
      return &Angle<&AcoshOf>;
    case OpType::kAtanh:
      return &Angle<&AtanhOf>;
    case OpType::kAsinGrad:
      return &AngleGrad<&AsinSlope>;
    case OpType::kAtanGrad:
      return &AngleGrad<&AtanSlope>;
    case OpType::kAsinhGrad:
      return &AngleGrad<&AsinhSlope>;
    case OpType::kAcoshGrad:
      return &AngleGrad<&AcoshSlope>;
    case OpType::kAtanhGrad:
      return &AngleGrad<&AtanhSlope>;
    default:
      return nullptr;
  }
}

float SmallerOp(float a, float b) { return Smaller(a, b); }
float LargerOp(float a, float b) { return Larger(a, b); }

// Of one or two operands.
template <float (*op)(float, float)>
OwnFunction Extremum(const KernelRequest& request) {
  if (request.inputs.size() > 2) return {.refusal = "serves two operands at most"};
  if (request.inputs.size() == 1) return {[](const HostCall& call) { Unary(call, [](float x) { return x; }); }, kName};
  if (!BroadcastLoops<2>(request.outputs[0].shape, {&request.inputs[0].shape, &request.inputs[1].shape}).fits()) {
    return {.refusal = kManyDimensions};
  }
  return {[](const HostCall& call) {
            BroadcastPairs<float, float>(call, kGrain, [](float a, float b) { return op(a, b); });
          },
          "own:broadcast"};
}

// dY goes to the operand that wins, half of it to each at a tie; to neither where one is NaN.
template <bool kLargest>
void ExtremumGrad(const HostCall& call) {
  const float* dy = call.in<float>(0);
  const BroadcastLoops<2> loops(call.out_shape(0), {&call.in_shape(1), &call.in_shape(2)});
  loops.Run(kGrain, [&](int64_t at, const std::array<int64_t, 2>& from, int64_t count) {
    const float* a = call.in<float>(1) + from[0];
    const float* b = call.in<float>(2) + from[1];
    const int64_t a_step = loops.varies(0) ? 1 : 0, b_step = loops.varies(1) ? 1 : 0;
    for (size_t side : {0, 1}) {
      float* to = call.out<float>(side);
      if (to == nullptr) continue;
      const bool wants_larger = kLargest == (side == 0);
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) {
        const float p = a[i * a_step], q = b[i * b_step];
        const float half = dy[at + i] * 0.5f;
        const bool wins = wants_larger ? p > q : p < q;
        const float tie = p == q ? half : 0.0f;
        to[at + i] = wins ? dy[at + i] : tie;
      }
    }
  });
}

}  // namespace

OwnFunction OwnMath(const KernelRequest& request) {
  const auto& inputs = request.inputs;
  switch (request.node->op) {
    case OpType::kMin:
      return Extremum<SmallerOp>(request);
    case OpType::kMax:
      return Extremum<LargerOp>(request);
    case OpType::kMinGrad:
    case OpType::kMaxGrad:
      if (!BroadcastLoops<2>(request.outputs[0].shape, {&inputs[1].shape, &inputs[2].shape}).fits())
        return {.refusal = kManyDimensions};
      return {request.node->op == OpType::kMaxGrad ? &ExtremumGrad<true> : &ExtremumGrad<false>, "own:broadcast"};
    default:
      return {AngleFunction(request.node->op), kName};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
