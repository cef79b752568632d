// The gradients of reductions.
#include <algorithm>

#include "common/math/math.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/reduction/cpu_groups.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

Groups GroupsOf(const HostCall& call) { return {call.attrs<ReduceGradAttributes>().reduce, call.in_shape(1)}; }

// dX[i] = slope(x[i], y, dy) with y and dy of the element's result.
template <typename Slope>
void Slopes(const HostCall& call, const Slope& slope) {
  const Groups groups = GroupsOf(call);
  const float* x = call.in<float>(1);
  ForResults(groups, [&](int64_t base, int64_t first, int64_t count) {
    const float* dy = call.in<float>(0) + first;
    const float* y = call.in<float>(2) + first;
    WriteElements(groups, base, count, call.out<float>(0),
                  [=](int64_t i, int64_t k) { return slope(x[i], y[k], dy[k]); });
  });
}

bool Wins(float x, float y) { return x == y || (x != x && y != y); }

// Shared equally among the elements that equal the result.
void ExtremeGrad(const HostCall& call) {
  const Groups groups = GroupsOf(call);
  const float* x = call.in<float>(1);
  ForResults(groups, [&](int64_t base, int64_t first, int64_t count) {
    const float* dy = call.in<float>(0) + first;
    const float* y = call.in<float>(2) + first;
    int64_t equal[kColumns] = {};
    FoldElements(groups, base, count, equal,
                 [=](int64_t before, int64_t i, int64_t k) { return before + (Wins(x[i], y[k]) ? 1 : 0); });
    float share[kColumns];
    for (int64_t k = 0; k < count; ++k) share[k] = static_cast<float>(double{dy[k]} / static_cast<double>(equal[k]));
    const float* of = share;
    WriteElements(groups, base, count, call.out<float>(0),
                  [=](int64_t i, int64_t k) { return Wins(x[i], y[k]) ? of[k] : 0.0f; });
  });
}

// Given to the first of them.
void FirstMaxGrad(const HostCall& call) {
  const Groups groups = GroupsOf(call);
  const float* x = call.in<float>(1);
  float* dx = call.out<float>(0);
  ForResults(groups, [&](int64_t base, int64_t first, int64_t count) {
    const float* dy = call.in<float>(0) + first;
    const float* y = call.in<float>(2) + first;
    bool given[kColumns] = {};
    FoldElements(groups, base, count, given, [=](bool before, int64_t i, int64_t k) {
      const bool takes = !before && Wins(x[i], y[k]);
      dx[i] = takes ? dy[k] : 0.0f;
      return before || takes;
    });
  });
}

// dY times the product of the others: from the product of what is not zero and the number of zeros.
void ProductGrad(const HostCall& call) {
  const Groups groups = GroupsOf(call);
  const float* x = call.in<float>(1);
  ForResults(groups, [&](int64_t base, int64_t first, int64_t count) {
    const float* dy = call.in<float>(0) + first;
    double product[kColumns];
    int64_t zeros[kColumns] = {};
    std::fill_n(product, count, 1.0);
    FoldElements(groups, base, count, product,
                 [x](double before, int64_t i, int64_t) { return x[i] == 0.0f ? before : before * x[i]; });
    FoldElements(groups, base, count, zeros,
                 [x](int64_t before, int64_t i, int64_t) { return before + (x[i] == 0.0f ? 1 : 0); });
    const double* of = product;
    const int64_t* none = zeros;
    WriteElements(groups, base, count, call.out<float>(0), [=](int64_t i, int64_t k) {
      const double alone = none[k] == 1 ? of[k] : 0.0;
      const double beside = none[k] == 0 ? of[k] / x[i] : 0.0;
      return static_cast<float>(dy[k] * (x[i] == 0.0f ? alone : beside));
    });
  });
}

HostFunction FunctionOf(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kMax:
    case ReduceKind::kMin:
      return &ExtremeGrad;
    case ReduceKind::kFirstMax:
      return &FirstMaxGrad;
    case ReduceKind::kProd:
      return &ProductGrad;
    case ReduceKind::kL1:
      return [](const HostCall& call) {
        Slopes(call, [](float x, float, float dy) { return x > 0 ? dy : x < 0 ? -dy : x * dy; });
      };
    case ReduceKind::kL2:
      return [](const HostCall& call) {
        Slopes(call, [](float x, float y, float dy) {
          const double slope = double{dy} * x / y;
          return y == 0.0f ? 0.0f : static_cast<float>(slope);
        });
      };
    case ReduceKind::kLogSum:
      return [](const HostCall& call) {
        Slopes(call, [](float, float y, float dy) { return static_cast<float>(dy / Exp(double{y})); });
      };
    case ReduceKind::kLogSumExp:
      return [](const HostCall& call) {
        Slopes(call, [](float x, float y, float dy) {
          const float slope = dy * Exp(x - y);
          return x == y ? dy : slope;
        });
      };
    case ReduceKind::kSumSquare:
      return [](const HostCall& call) { Slopes(call, [](float x, float, float dy) { return 2.0f * dy * x; }); };
  }
  return nullptr;
}

}  // namespace

OwnFunction OwnReductionGrad(const KernelRequest& request) {
  if (request.node->op != OpType::kReduceGrad) return {};
  const auto& attributes = AttributesOf<ReduceGradAttributes>(request);
  if (!Groups(attributes.reduce, request.inputs[1].shape).fits()) return {.refusal = kManyDimensions};
  return {FunctionOf(attributes.of), "own:reduce"};
}

}  // namespace lockstep::device::cpu::LS_CODE
