// Normalisations of rows: layer, root mean square, and by norms; and their gradients. A row is read once, into
// registers where it fits. Lanes add up what they hold in float, teams in double.
#include "common/math/math.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/pair_sum.h"
#include "worker/kernels/cuda/row_kernels.h"

namespace lockstep::device::cuda {
namespace {

template <bool kHold, typename T>
struct LayerNormRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    const auto load = [this](const Cell& cell) -> float { return x[cell.at]; };
    const Held<kHold, float, Team<kKind>> row(team, load);
    const auto n = static_cast<double>(extent);
    float sum = 0;
    row.Each(load, [&](const Cell&, float value) { sum += value; });
    const double exact_mean = team.Sum(double{sum}) / n;
    const auto center = static_cast<float>(exact_mean);
    float squares = 0;
    row.Each(load, [&](const Cell&, float value) { squares += (value - center) * (value - center); });
    // The squares are of distances from the rounded mean.
    const double off = exact_mean - double{center};
    const double variance = team.Sum(double{squares}) / n - off * off;
    const auto deviation = static_cast<float>(1.0 / SquareRoot(variance + epsilon));
    row.Each(load, [&](const Cell& cell, float value) {
      const float normal = (value - center) * deviation * scale[cell.i];
      y[cell.at] = bias != nullptr ? normal + bias[cell.i] : normal;
    });
    if (!team.leads()) return;
    if (mean != nullptr) mean[team.row()] = center;
    if (inv_std != nullptr) inv_std[team.row()] = deviation;
  }

  const T* x;
  const float* scale;
  const float* bias;  // or null
  T* y;
  float* mean;     // or null
  float* inv_std;  // or null
  int extent;
  double epsilon;
};

template <typename T>
absl::Status LayerNorm(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<LayerNormAttributes>();
  const RowPlan plan = PlanTail(call.in_shape(0), attributes.axis);
  const auto launch = [&]<bool kHold>() {
    return ForEachRow<false>(
        stream, plan,
        LayerNormRow<kHold, T>{call.in<T>(0), call.in<float>(1), call.in<float>(2), call.out<T>(0), call.out<float>(1),
                               call.out<float>(2), plan.extent, attributes.epsilon});
  };
  return IsHeld(plan) ? launch.template operator()<true>() : launch.template operator()<false>();
}

// 1 / sqrt(mean of squares + epsilon) of each row, and X * it * scale where `y` is wanted.
template <bool kHold, typename T>
struct RmsNormRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    const auto load = [this](const Cell& cell) -> float { return x[cell.at]; };
    const Held<kHold, float, Team<kKind>> row(team, load);
    float squares = 0;
    row.Each(load, [&](const Cell&, float value) { squares += value * value; });
    const double mean = team.Sum(double{squares}) / static_cast<double>(extent);
    const auto inverse = static_cast<float>(1.0 / SquareRoot(mean + epsilon));
    row.Each(load, [&](const Cell& cell, float value) { y[cell.at] = value * inverse * scale[cell.i]; });
  }

  const T* x;
  const float* scale;
  T* y;
  int extent;
  double epsilon;
};

template <typename T>
absl::Status RmsNorm(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<LayerNormAttributes>();
  const RowPlan plan = PlanTail(call.in_shape(0), attributes.axis);
  const auto launch = [&]<bool kHold>() {
    return ForEachRow<false>(
        stream, plan,
        RmsNormRow<kHold, T>{call.in<T>(0), call.in<float>(1), call.out<T>(0), plan.extent, attributes.epsilon});
  };
  return IsHeld(plan) ? launch.template operator()<true>() : launch.template operator()<false>();
}

// An element of the gradient's and of the forward op's input.
struct Inputs {
  float dy;
  float x;
};

// With xhat = (x - mean) * inv_std, g = dY * scale and means over a row:
//   dX = inv_std * (g - mean(g) - xhat * mean(g * xhat))
// Without `kCenter` mean(g) and the mean are left out, and inv_std is found again and kept: that of RMSNormalization.
template <bool kHold, bool kCenter, typename T>
struct NormGradientRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    const auto load = [this](const Cell& cell) { return Inputs{dy[cell.at], x[cell.at]}; };
    const Held<kHold, Inputs, Team<kKind>> row(team, load);
    const auto n = static_cast<double>(extent);
    const float center = kCenter ? mean[team.row()] : 0.0f;
    float deviation = 0;
    if constexpr (kCenter) {
      deviation = inv_std[team.row()];
    } else {
      float squares = 0;
      row.Each(load, [&](const Cell&, const Inputs& v) { squares += v.x * v.x; });
      deviation = static_cast<float>(1.0 / SquareRoot(team.Sum(double{squares}) / n + epsilon));
      if (team.leads()) inv_std[team.row()] = deviation;
    }
    if (dx == nullptr) return;
    float sum = 0;
    float dot = 0;
    row.Each(load, [&](const Cell& cell, const Inputs& v) {
      const float g = v.dy * scale[cell.i];
      sum += g;
      dot += g * ((v.x - center) * deviation);
    });
    const Pair sums = team.FoldLanes(Pair{double{sum}, double{dot}}, PairSum());
    const float mean_g = kCenter ? static_cast<float>(sums.first / n) : 0.0f;
    const auto mean_dot = static_cast<float>(sums.second / n);
    row.Each(load, [&](const Cell& cell, const Inputs& v) {
      const float xhat = (v.x - center) * deviation;
      const float gradient = deviation * (v.dy * scale[cell.i] - mean_g - xhat * mean_dot);
      dx[cell.at] = dsum != nullptr ? gradient + float{dsum[cell.at]} : gradient;
    });
  }

  const T* dy;
  const T* x;
  const float* scale;
  const float* mean;
  float* inv_std;
  const T* dsum;  // what is added to dX, or null
  T* dx;          // or null
  int extent;
  double epsilon;
};

// Sums over rows of dY * xhat and dY, for each column: here the rows of the plan are the columns of X.
template <typename T>
struct ColumnGradients {
  using Value = Pair;
  LS_HD Value First() const { return {0.0, 0.0}; }
  LS_HD Value Take(const Value& value, const Cell& cell) const {
    const float center = mean != nullptr ? mean[cell.i] : 0.0f;
    const float xhat = (x[cell.at] - center) * inv_std[cell.i];
    return {value.first + double{float{dy[cell.at]}} * double{xhat}, value.second + double{float{dy[cell.at]}}};
  }
  LS_HD Value Join(const Value& a, const Value& b) const { return PairSum()(a, b); }
  LS_HD void Finish(int64_t column, const Value& value) const {
    if (dscale != nullptr) dscale[column] = static_cast<float>(value.first);
    if (dbias != nullptr) dbias[column] = static_cast<float>(value.second);
  }

  const T* dy;
  const T* x;
  const float* mean;
  const float* inv_std;
  float* dscale;
  float* dbias;
};

RowPlan PlanColumns(const RowPlan& rows) { return PlanRows({rows.row_count, rows.extent}, {true, false}); }

// LayerNormGrad and RMSNormGrad, which lacks mean and inv_std and keeps the latter in the workspace.
template <bool kCenter, typename T>
absl::Status NormGradient(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<LayerNormAttributes>();
  const RowPlan plan = PlanTail(call.in_shape(1), attributes.axis);
  const float* mean = kCenter ? call.in<float>(3) : nullptr;
  float* inv_std = kCenter ? reinterpret_cast<float*>(call.inputs[4]) : reinterpret_cast<float*>(call.workspace);
  const size_t kept = kCenter ? 0 : RowBytes<float>(plan);
  const auto launch = [&]<bool kHold>() {
    return ForEachRow<false>(stream, plan,
                             NormGradientRow<kHold, kCenter, T>{call.in<T>(0), call.in<T>(1), call.in<float>(2), mean,
                                                                inv_std, call.in<T>(kCenter ? 5 : 3), call.out<T>(0),
                                                                plan.extent, attributes.epsilon});
  };
  LS_RETURN_IF_ERROR(IsHeld(plan) ? launch.template operator()<true>() : launch.template operator()<false>());
  const ColumnGradients<T> columns{call.in<T>(0), call.in<T>(1),      mean,
                                   inv_std,       call.out<float>(1), kCenter ? call.out<float>(2) : nullptr};
  if (columns.dscale == nullptr && columns.dbias == nullptr) return absl::OkStatus();
  return FoldRows(stream, PlanColumns(plan), call.workspace + kept, columns);
}

struct LpTerms {
  int64_t p;
  LS_HD double Term(double x) const { return p == 2 ? x * x : x < 0 ? -x : x; }
  LS_HD double Of(double sum) const { return p == 2 ? SquareRoot(sum) : sum; }
};

struct LpNormRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    double sum = 0;
    team.Each([&](const Cell& cell) { sum += norm.Term(x[cell.at]); });
    const auto length = static_cast<float>(norm.Of(team.Sum(sum)));
    team.Each([&](const Cell& cell) { return x[cell.at]; },
              [&](const Cell& cell, float value) { y[cell.at] = length == 0.0f ? 0.0f : value / length; });
  }
  LpTerms norm;
  const float* x;
  float* y;
};

// dX = dY / norm - slope of the norm * sum(dY * X) / norm^2, that slope being sign(x) or x / norm.
struct LpNormGradientRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    Pair sums{0.0, 0.0};
    team.Each([&](const Cell& cell) {
      const float value = x[cell.at];
      sums = PairSum()(sums, {norm.Term(value), double{dy[cell.at]} * double{value}});
    });
    sums = team.FoldLanes(sums, PairSum());
    const double length = norm.Of(sums.first);
    const double part = sums.second / (length * length);
    // In double: of one element alone nothing is left of the difference.
    team.Each(
        [&](const Cell& cell) {
          return Inputs{dy[cell.at], x[cell.at]};
        },
        [&](const Cell& cell, const Inputs& v) {
          const double value = v.x;
          const double slope = norm.p == 2 ? value / length : value > 0 ? 1.0 : value < 0 ? -1.0 : value;
          dx[cell.at] = length == 0.0 ? 0.0f : static_cast<float>(double{v.dy} / length - slope * part);
        });
  }
  LpTerms norm;
  const float* dy;
  const float* x;
  float* dx;
};

absl::Status LpNorm(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<LpNormAttributes>();
  return ForEachRow(stream, PlanAxis(call.in_shape(0), attributes.axis),
                    LpNormRow{{attributes.p}, call.in<float>(0), call.out<float>(0)});
}

absl::Status LpNormGradient(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<LpNormAttributes>();
  return ForEachRow(stream, PlanAxis(call.in_shape(0), attributes.axis),
                    LpNormGradientRow{{attributes.p}, call.in<float>(0), call.in<float>(1), call.out<float>(0)});
}

template <typename T>
OwnFunction NormFunction(OpType op, const RowPlan& plan) {
  const auto columns = [&] { return FoldBytes<ColumnGradients<T>>(PlanColumns(plan)); };
  switch (op) {
    case OpType::kLayerNormalization:
      return {&LayerNorm<T>, "rows"};
    case OpType::kRmsNormalization:
      return {&RmsNorm<T>, "rows"};
    case OpType::kLayerNormGrad:
      return {&NormGradient<true, T>, "rows", columns()};
    case OpType::kRmsNormGrad:
      return {&NormGradient<false, T>, "rows", RowBytes<float>(plan) + columns()};
    default:
      return {};
  }
}

}  // namespace

OwnFunction OwnLayerNorm(const KernelRequest& request) {
  const OpType op = request.node->op;
  if (const auto* norm = std::get_if<LpNormAttributes>(&request.node->attributes); norm != nullptr) {
    if (request.outputs[0].dtype != DType::kF32) return {.refusal = kOtherType};
    if (!PlanAxis(request.inputs[0].shape, norm->axis).served) return {.refusal = kOtherRows};
    return op == OpType::kLpNormGrad ? OwnFunction{&LpNormGradient, "rows"} : OwnFunction{&LpNorm, "rows"};
  }
  const auto* attributes = std::get_if<LayerNormAttributes>(&request.node->attributes);
  if (attributes == nullptr) return {};
  const bool gradient = op == OpType::kLayerNormGrad || op == OpType::kRmsNormGrad;
  const RowPlan plan = PlanTail(request.inputs[gradient ? 1 : 0].shape, attributes->axis);
  if (!plan.served) return {.refusal = kOtherRows};
  return ForStoredFloat(request.outputs[0].dtype, [&]<typename T>(Type<T>) { return NormFunction<T>(op, plan); });
}

}  // namespace lockstep::device::cuda
