// The gradients of reductions. What an element's share depends on besides it is found first, row by row, where that is
// more than the result: how many extremes there are, the product and the zeros.
#include <limits>

#include "common/math/math.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/pair_sum.h"
#include "worker/kernels/cuda/row_kernels.h"
#include "worker/kernels/reduction/reduction.h"

namespace lockstep::device::cuda {
namespace {

RowPlan PlanOf(const ReduceGradAttributes& attributes, const Shape& shape) {
  const Shape kept = KeptShape(attributes.reduce, shape);
  std::vector<bool> walked(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) walked[d] = kept[d] != shape[d];
  return PlanRows(shape, walked);
}

// The derivative of the result by an element, times dy, where it follows from the element and the result.
LS_HD double Slope(ReduceKind kind, double x, double y, double dy) {
  switch (kind) {
    case ReduceKind::kL1:
      return x > 0 ? dy : x < 0 ? -dy : x * dy;
    case ReduceKind::kL2:
      return y == 0 ? 0.0 : dy * x / y;
    case ReduceKind::kLogSum:
      return dy / Exp(y);
    case ReduceKind::kLogSumExp:
      return x == y ? dy : dy * Exp(x - y);
    default:
      return 2 * dy * x;
  }
}

struct SlopeRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    const double result = y != nullptr ? double{y[team.row()]} : 0.0;
    const double upstream = dy[team.row()];
    team.Each([&](const Cell& cell) { return x[cell.at]; },
              [&](const Cell& cell, float value) {
                dx[cell.at] = static_cast<float>(Slope(kind, double{value}, result, upstream));
              });
  }
  const float* dy;
  const float* x;
  const float* y;
  float* dx;
  ReduceKind kind;
};

LS_HD bool EqualOrNan(float x, float y) { return x == y || (x != x && y != y); }

// How many elements equal the result, or the index of the first.
struct Winners {
  using Value = int;
  LS_HD int First() const { return first_only ? std::numeric_limits<int>::max() : 0; }
  LS_HD int Take(int value, const Cell& cell) const {
    if (!EqualOrNan(x[cell.at], y[cell.row])) return value;
    return Join(value, first_only ? cell.i : 1);
  }
  LS_HD int Join(int a, int b) const { return first_only ? (a < b ? a : b) : a + b; }
  LS_HD void Finish(int64_t row, int value) const { kept[row] = value; }

  const float* x;
  const float* y;
  int* kept;
  bool first_only;
};

struct WinnersRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    const float result = y[team.row()];
    const float upstream = dy[team.row()];
    const int found = kept[team.row()];
    const auto share = first_only ? upstream : static_cast<float>(double{upstream} / found);
    team.Each([&](const Cell& cell) { return x[cell.at]; },
              [&](const Cell& cell, float value) {
                const bool wins = first_only ? cell.i == found : EqualOrNan(value, result);
                dx[cell.at] = wins ? share : 0.0f;
              });
  }
  const float* dy;
  const float* x;
  const float* y;
  const int* kept;
  float* dx;
  bool first_only;
};

// The product of what is not zero, and the number of zeros.
struct ProductOfRow {
  using Value = Pair;
  LS_HD Value First() const { return {1.0, 0.0}; }
  LS_HD Value Take(const Value& value, const Cell& cell) const {
    const double element = x[cell.at];
    return element == 0 ? Value{value.first, value.second + 1} : Value{value.first * element, value.second};
  }
  LS_HD Value Join(const Value& a, const Value& b) const { return {a.first * b.first, a.second + b.second}; }
  LS_HD void Finish(int64_t row, const Value& value) const { kept[row] = value; }

  const float* x;
  Pair* kept;
};

// dY times the product of the others.
struct ProductRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    const Pair product = kept[team.row()];
    const double upstream = dy[team.row()];
    team.Each([&](const Cell& cell) { return x[cell.at]; },
              [&](const Cell& cell, float value) {
                const double with_zero = value == 0.0f && product.second == 1 ? product.first : 0.0;
                const double others = value != 0.0f && product.second == 0 ? product.first / double{value} : with_zero;
                dx[cell.at] = static_cast<float>(upstream * others);
              });
  }
  const float* dy;
  const float* x;
  const Pair* kept;
  float* dx;
};

absl::Status SlopeGradient(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<ReduceGradAttributes>();
  return ForEachRow(
      stream, InParts(PlanOf(attributes, call.in_shape(1)), 4),
      SlopeRow{call.in<float>(0), call.in<float>(1), call.in<float>(2), call.out<float>(0), attributes.of});
}

absl::Status ExtremeGradient(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<ReduceGradAttributes>();
  const RowPlan plan = PlanOf(attributes, call.in_shape(1));
  const bool first_only = attributes.of == ReduceKind::kFirstMax;
  auto* kept = reinterpret_cast<int*>(call.workspace);
  LS_RETURN_IF_ERROR(FoldRows(stream, plan, call.workspace + RowBytes<int>(plan),
                              Winners{call.in<float>(1), call.in<float>(2), kept, first_only}));
  return ForEachRow(
      stream, InParts(plan, 4),
      WinnersRow{call.in<float>(0), call.in<float>(1), call.in<float>(2), kept, call.out<float>(0), first_only});
}

absl::Status ProductGradient(const DeviceCall& call, StreamHandle stream) {
  const RowPlan plan = PlanOf(call.attrs<ReduceGradAttributes>(), call.in_shape(1));
  auto* kept = reinterpret_cast<Pair*>(call.workspace);
  LS_RETURN_IF_ERROR(
      FoldRows(stream, plan, call.workspace + RowBytes<Pair>(plan), ProductOfRow{call.in<float>(1), kept}));
  return ForEachRow(stream, InParts(plan, 4),
                    ProductRow{call.in<float>(0), call.in<float>(1), kept, call.out<float>(0)});
}

}  // namespace

OwnFunction OwnReduceGradient(const KernelRequest& request) {
  if (request.node->op != OpType::kReduceGrad) return {};
  if (request.outputs[0].dtype != DType::kF32) return {.refusal = kOtherType};
  const auto& attributes = AttributesOf<ReduceGradAttributes>(request);
  const RowPlan plan = PlanOf(attributes, request.inputs[1].shape);
  if (!plan.served) return {.refusal = kOtherRows};
  switch (attributes.of) {
    case ReduceKind::kMax:
    case ReduceKind::kMin:
    case ReduceKind::kFirstMax:
      return {&ExtremeGradient, "fold", RowBytes<int>(plan) + FoldBytes<Winners>(plan)};
    case ReduceKind::kProd:
      return {&ProductGradient, "fold", RowBytes<Pair>(plan) + FoldBytes<ProductOfRow>(plan)};
    default:
      return {&SlopeGradient, "rows"};
  }
}

}  // namespace lockstep::device::cuda
