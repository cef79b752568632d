// Normalisation of groups of channels, instances among them, and the gradient. A row is one group of one sample.
#include <algorithm>

#include "common/math/math.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/axis_shapes.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/pair_sum.h"
#include "worker/kernels/cuda/row_kernels.h"

namespace lockstep::device::cuda {
namespace {

struct Groups : GroupExtents {
  Groups(const GroupNormAttributes& attributes, const Shape& x) : GroupExtents(attributes.num_groups, x), batch(x[0]) {}
  int64_t batch;

  int64_t groups() const { return channels == 0 ? 0 : all_channels / channels; }
  RowPlan row_plan() const { return PlanRows({rows, width()}, {false, true}); }
  RowPlan columns() const { return PlanRows({batch, all_channels, plane}, {true, false, true}); }
};

// The channel of an element of a row.
struct ChannelOf {
  explicit ChannelOf(const Groups& g)
      : groups(static_cast<int>(std::max<int64_t>(g.groups(), 1))),
        channels(static_cast<int>(g.channels)),
        plane(std::max<int64_t>(g.plane, 1)) {}
  LS_HD int First(int64_t row) const { return static_cast<int>(row % groups) * channels; }
  LS_HD int operator()(int first, int i) const { return first + QuotientOf(i, plane); }

  int groups;
  int channels;
  FastDivide plane;
};

struct RowStatistics {
  float mean;
  float inv_std;
};

// Of a row that is read once more for it, as a team.
template <typename T, TeamKind kKind>
__device__ RowStatistics StatisticsOf(const Team<kKind>& team, const T* x, int extent, double epsilon) {
  Pair sums{0.0, 0.0};
  team.Each([&](const Cell& cell) {
    const double value = float{x[cell.at]};
    sums = PairSum()(sums, {value, value * value});
  });
  sums = team.FoldLanes(sums, PairSum());
  const double mean = sums.first / extent;
  const double left = sums.second - sums.first * mean;
  const double variance = left < 0 ? 0.0 : left / extent;
  return {static_cast<float>(mean), static_cast<float>(1.0 / SquareRoot(variance + epsilon))};
}

template <typename T>
struct GroupNormRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    const RowStatistics s = StatisticsOf(team, x, extent, epsilon);
    const int first = channel.First(team.row());
    team.Each([&](const Cell& cell) { return x[cell.at]; },
              [&](const Cell& cell, float value) {
                const int c = channel(first, cell.i);
                y[cell.at] = (value - s.mean) * s.inv_std * scale[c] + bias[c];
              });
  }
  const T* x;
  const float* scale;
  const float* bias;
  T* y;
  ChannelOf channel;
  int extent;
  double epsilon;
};

template <typename T>
absl::Status GroupNorm(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<GroupNormAttributes>();
  const Groups groups(attributes, call.in_shape(0));
  const RowPlan plan = groups.row_plan();
  return ForEachRow<false>(stream, plan,
                           GroupNormRow<T>{call.in<T>(0), call.in<float>(1), call.in<float>(2), call.out<T>(0),
                                           ChannelOf(groups), plan.extent, attributes.epsilon});
}

struct GroupInputs {
  float dy;
  float x;
};

// As LayerNormGrad, with the scale of channels; keeps the statistics.
template <typename T>
struct InputGradientRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    const RowStatistics s = StatisticsOf(team, x, extent, epsilon);
    if (team.leads()) kept[team.row()] = s;
    if (dx == nullptr) return;
    const int first = channel.First(team.row());
    Pair sums{0.0, 0.0};
    team.Each([&](const Cell& cell) {
      const float g = dy[cell.at] * scale[channel(first, cell.i)];
      sums = PairSum()(sums, {double{g}, double{g} * double{(x[cell.at] - s.mean) * s.inv_std}});
    });
    sums = team.FoldLanes(sums, PairSum());
    const auto mean_g = static_cast<float>(sums.first / extent);
    const auto mean_dot = static_cast<float>(sums.second / extent);
    team.Each(
        [&](const Cell& cell) {
          return GroupInputs{dy[cell.at], x[cell.at]};
        },
        [&](const Cell& cell, const GroupInputs& v) {
          const float g = v.dy * scale[channel(first, cell.i)];
          dx[cell.at] = s.inv_std * (g - mean_g - (v.x - s.mean) * s.inv_std * mean_dot);
        });
  }
  const T* dy;
  const T* x;
  const float* scale;
  RowStatistics* kept;
  T* dx;  // or null
  ChannelOf channel;
  int extent;
  double epsilon;
};

// Sums over samples and planes of dY * xhat and dY: rows of the plan are channels.
template <typename T>
struct ChannelGradients {
  using Value = Pair;
  LS_HD Value First() const { return {0.0, 0.0}; }
  LS_HD Value Take(const Value& value, const Cell& cell) const {
    const int sample = QuotientOf(cell.i, channel.plane);
    const RowStatistics s = kept[int64_t{sample} * channel.groups + cell.row / channel.channels];
    const double gradient = float{dy[cell.at]};
    const float xhat = (x[cell.at] - s.mean) * s.inv_std;
    return {value.first + gradient * double{xhat}, value.second + gradient};
  }
  LS_HD Value Join(const Value& a, const Value& b) const { return PairSum()(a, b); }
  LS_HD void Finish(int64_t c, const Value& value) const {
    if (dscale != nullptr) dscale[c] = static_cast<float>(value.first);
    if (dbias != nullptr) dbias[c] = static_cast<float>(value.second);
  }
  const T* dy;
  const T* x;
  const RowStatistics* kept;
  float* dscale;
  float* dbias;
  ChannelOf channel;
};

template <typename T>
absl::Status GroupNormGradient(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<GroupNormAttributes>();
  const Groups groups(attributes, call.in_shape(1));
  const RowPlan plan = groups.row_plan();
  const ChannelOf channel(groups);
  auto* kept = reinterpret_cast<RowStatistics*>(call.workspace);
  LS_RETURN_IF_ERROR(ForEachRow<false>(stream, plan,
                                       InputGradientRow<T>{call.in<T>(0), call.in<T>(1), call.in<float>(2), kept,
                                                           call.out<T>(0), channel, plan.extent, attributes.epsilon}));
  return FoldRows(
      stream, groups.columns(), call.workspace + RowBytes<RowStatistics>(plan),
      ChannelGradients<T>{call.in<T>(0), call.in<T>(1), kept, call.out<float>(1), call.out<float>(2), channel});
}

}  // namespace

OwnFunction OwnGroupNorm(const KernelRequest& request) {
  const auto* attributes = std::get_if<GroupNormAttributes>(&request.node->attributes);
  if (attributes == nullptr) return {};
  const bool gradient = request.node->op == OpType::kGroupNormGrad;
  const Groups groups(*attributes, request.inputs[gradient ? 1 : 0].shape);
  const RowPlan plan = groups.row_plan();
  if (!plan.served || !groups.columns().served) return {.refusal = kOtherRows};
  return ForStoredFloat(request.outputs[0].dtype, [&]<typename T>(Type<T>) -> OwnFunction {
    if (!gradient) return {&GroupNorm<T>, "rows"};
    const size_t sums = FoldBytes<ChannelGradients<T>>(groups.columns());
    return {&GroupNormGradient<T>, "rows", RowBytes<RowStatistics>(plan) + sums};
  });
}

}  // namespace lockstep::device::cuda
