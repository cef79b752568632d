#include "worker/kernels/activation/activation.h"
#include "worker/kernels/arithmetic/cpu_loops.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/own_loops.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

float AddOp(float a, float b) { return a + b; }
float SubOp(float a, float b) { return a - b; }
float MulOp(float a, float b) { return a * b; }
float DivOp(float a, float b) { return a / b; }
float PReluOp(float x, float slope) { return LeakyRelu(x, slope); }

// `any_layout`: whether op gives a number for the padding of a blocked value, which is zero.
template <float (*op)(float, float)>
OwnFunction Binary(const KernelRequest& request, bool any_layout) {
  const Shape& a = request.inputs[0].shape;
  const Shape& b = request.inputs[1].shape;
  const Shape& y = request.outputs[0].shape;
  if (a == y && b == y) {
    return {[](const HostCall& call) { Same(call, [](float p, float q) { return op(p, q); }); }, "own:elementwise",
            any_layout};
  }
  if (!BroadcastLoops<2>(y, {&a, &b}).fits()) return {.refusal = kManyDimensions};
  return {[](const HostCall& call) {
            BroadcastPairs<float, float>(call, kGrain, [](float p, float q) { return op(p, q); });
          },
          "own:broadcast"};
}

// Bools are read as bytes, 0 or 1: loops over bools do not become vector code. One row of Where; an operand that does
// not vary is one number.
template <bool kX, bool kY>
void Choose(const uint8_t* condition, const float* x, const float* y, float* to, int64_t count) {
  const float x_first = *x;
  const float y_first = *y;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const float a = kX ? x[i] : x_first;
    const float b = kY ? y[i] : y_first;
    to[i] = condition[i] != 0 ? a : b;
  }
}

void Where(const HostCall& call) {
  const uint8_t* condition = call.in<uint8_t>(0);
  const float* x = call.in<float>(1);
  const float* y = call.in<float>(2);
  float* to = call.out<float>(0);
  const BroadcastLoops<3> loops(call.out_shape(0), {&call.in_shape(0), &call.in_shape(1), &call.in_shape(2)});
  const auto choose = loops.varies(1) ? (loops.varies(2) ? Choose<true, true> : Choose<true, false>)
                                      : (loops.varies(2) ? Choose<false, true> : Choose<false, false>);
  loops.Run(kGrain, [&](int64_t at, const std::array<int64_t, 3>& from, int64_t count) {
    const uint8_t* c = condition + from[0];
    const float* p = x + from[1];
    const float* q = y + from[2];
    if (loops.varies(0)) {
      choose(c, p, q, to + at, count);
      return;
    }
    const float* chosen = *c != 0 ? p : q;
    if (loops.varies(*c != 0 ? 1 : 2)) {
      for (int64_t i = 0; i < count; ++i) to[at + i] = chosen[i];
    } else {
      std::fill_n(to + at, count, *chosen);
    }
  });
}

// dX where the condition is `holds`, else 0.
void Select(const uint8_t* condition, bool varies, uint8_t holds, const float* dy, float* to, int64_t count) {
  if (varies) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const float gradient = dy[i];
      to[i] = condition[i] == holds ? gradient : 0.0f;
    }
  } else if (*condition == holds) {
    std::copy_n(dy, count, to);
  } else {
    std::fill_n(to, count, 0.0f);
  }
}

void WhereGrad(const HostCall& call) {
  const float* dy = call.in<float>(0);
  const uint8_t* condition = call.in<uint8_t>(1);
  const BroadcastLoops<1> loops(call.out_shape(0), {&call.in_shape(1)});
  loops.Run(kGrain, [&](int64_t at, const std::array<int64_t, 1>& from, int64_t count) {
    for (size_t i : {0, 1}) {
      if (float* to = call.out<float>(i); to != nullptr) {
        Select(condition + from[0], loops.varies(0), i == 0 ? 1 : 0, dy + at, to + at, count);
      }
    }
  });
}

// Of an element and of its slope, which is summed elsewhere.
void PReluGrad(const HostCall& call) {
  const float* slope = call.in<float>(2);
  float* dslope = call.out<float>(1);
  const BroadcastLoops<1> loops(call.out_shape(0), {&call.in_shape(2)});
  loops.Run(kGrain, [&](int64_t at, const std::array<int64_t, 1>& from, int64_t count) {
    const float* dy = call.in<float>(0) + at;
    const float* x = call.in<float>(1) + at;
    float* dx = call.out<float>(0) + at;
    const float* own = slope + from[0];
    const int64_t step = loops.varies(0) ? 1 : 0;
    for (int64_t i = 0; i < count; ++i) {
      const float below = dy[i] * own[i * step];
      dx[i] = x[i] > 0.0f ? dy[i] : below;
    }
    if (dslope == nullptr) return;
    for (int64_t i = 0; i < count; ++i) {
      const float below = dy[i] * x[i];
      dslope[at + i] = x[i] > 0.0f ? 0.0f : below;
    }
  });
}

}  // namespace

OwnFunction OwnBroadcast(const KernelRequest& request) {
  const auto& inputs = request.inputs;
  switch (request.node->op) {
    case OpType::kAdd:
      return Binary<AddOp>(request, true);
    case OpType::kSub:
      return Binary<SubOp>(request, true);
    case OpType::kMul:
      return Binary<MulOp>(request, true);
    case OpType::kDiv:
      return Binary<DivOp>(request, false);
    case OpType::kPRelu:
      return Binary<PReluOp>(request, false);
    case OpType::kPReluGrad:
      if (!BroadcastLoops<1>(request.outputs[0].shape, {&inputs[2].shape}).fits()) return {.refusal = kManyDimensions};
      return {&PReluGrad, "own:broadcast"};
    case OpType::kWhere:
      if (!BroadcastLoops<3>(request.outputs[0].shape, {&inputs[0].shape, &inputs[1].shape, &inputs[2].shape}).fits()) {
        return {.refusal = kManyDimensions};
      }
      return {&Where, "own:where"};
    case OpType::kWhereGrad:
      if (!BroadcastLoops<1>(request.outputs[0].shape, {&inputs[1].shape}).fits()) return {.refusal = kManyDimensions};
      return {&WhereGrad, "own:where"};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
