// Batch normalisation in its forms, over channels. Sums are gathered in double, of the elements and of their squares in
// one pass: nothing that counts cancels at that width.
#include "common/math/math.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/channels_last.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/pair_sum.h"
#include "worker/kernels/cuda/row_kernels.h"

namespace lockstep::device::cuda {
namespace {

RowPlan PlanChannels(const Operand& x) { return cuda::PlanChannels(x.shape, IsChannelsLast(x)); }

// Where the affine map of a channel comes from: what the fold kept, or given statistics.
struct ChannelMap {
  float mean;
  float factor;  // of x - mean
};
struct KeptMap {
  LS_HD ChannelMap At(int64_t c) const { return kept[c]; }
  const ChannelMap* kept;
};
struct GivenMap {
  LS_HD double InvStd(int64_t c) const { return 1.0 / SquareRoot(double{variance[c]} + epsilon); }
  LS_HD ChannelMap At(int64_t c) const { return {mean[c], static_cast<float>(InvStd(c) * double{scale[c]})}; }
  const float* scale;
  const float* mean;
  const float* variance;
  double epsilon;
};

// (X - mean) * factor + bias, and Relu of it where that is fused behind.
template <typename Map, typename T>
struct Normalise {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    const ChannelMap channel = map.At(team.row());
    const float shift = bias[team.row()];
    team.Each([&](const Cell& cell) { return x[cell.at]; },
              [&](const Cell& cell, float value) {
                const float normal = (value - channel.mean) * channel.factor + shift;
                y[cell.at] = relu && normal < 0.0f ? 0.0f : normal;
              });
  }
  Map map;
  const T* x;
  const float* bias;
  T* y;
  bool relu;
};

template <bool kRelu, typename T>
absl::Status Inference(const DeviceCall& call, StreamHandle stream) {
  const GivenMap map{call.in<float>(1), call.in<float>(3), call.in<float>(4),
                     call.attrs<BatchNormAttributes>().epsilon};
  return ForEachRow(stream, InParts(PlanChannels(call.input_infos[0]), 4),
                    Normalise<GivenMap, T>{map, call.in<T>(0), call.in<float>(2), call.out<T>(0), kRelu});
}

template <typename T>
struct Statistics {
  using Value = Pair;
  LS_HD Value First() const { return {0.0, 0.0}; }
  LS_HD Value Take(const Value& value, const Cell& cell) const {
    const double element = float{x[cell.at]};
    return {value.first + element, value.second + element * element};
  }
  LS_HD Value Join(const Value& a, const Value& b) const { return PairSum()(a, b); }
  LS_HD void Finish(int64_t c, const Value& sums) const {
    const double center = sums.first / count;
    // Rounding may leave a little less than nothing of equal elements.
    const double left = sums.second - sums.first * center;
    const double squares = left < 0 ? 0.0 : left;
    const double variance = squares / count;
    const double deviation = 1.0 / SquareRoot(variance + epsilon);
    kept[c] = {static_cast<float>(center), static_cast<float>(deviation * double{scale[c]})};
    if (mean != nullptr) mean[c] = static_cast<float>(center);
    if (inv_std != nullptr) inv_std[c] = static_cast<float>(deviation);
    if (batch_variance == nullptr) return;
    batch_variance[c] = static_cast<float>(unbiased && count > 1 ? squares / (count - 1) : variance);
  }

  const T* x;
  const float* scale;
  ChannelMap* kept;
  float* mean;            // or null
  float* inv_std;         // or null
  float* batch_variance;  // or null
  double count;
  double epsilon;
  bool unbiased;
};

template <bool kRelu, typename T>
absl::Status Training(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<BatchNormAttributes>();
  const RowPlan plan = PlanChannels(call.input_infos[0]);
  auto* kept = reinterpret_cast<ChannelMap*>(call.workspace);
  const Statistics<T> statistics{.x = call.in<T>(0),
                                 .scale = call.in<float>(1),
                                 .kept = kept,
                                 .mean = call.out<float>(1),
                                 .inv_std = call.out<float>(2),
                                 .batch_variance = call.out<float>(3),
                                 .count = static_cast<double>(plan.extent),
                                 .epsilon = attributes.epsilon,
                                 .unbiased = attributes.unbiased_running_var};
  LS_RETURN_IF_ERROR(FoldRows(stream, plan, call.workspace + RowBytes<ChannelMap>(plan), statistics));
  return ForEachRow(stream, InParts(plan, 4),
                    Normalise<KeptMap, T>{{kept}, call.in<T>(0), call.in<float>(2), call.out<T>(0), kRelu});
}

struct Inputs {
  float dy;
  float x;
};

// dX of a channel: factor * (dY - mean_dy - (x - mean) * slope), the slope holding inv_std^2 * mean(dY * (x - mean)).
struct GradientMap {
  float mean;
  float factor;
  float mean_dy;
  float slope;
};

// dScale = sum of dY * xhat and dBias = sum of dY, with xhat = (x - mean) * inv_std; and what dX needs, where it is
// wanted:
//   dX = scale * inv_std * (dY - sum(dY) / n - xhat * sum(dY * xhat) / n)
template <typename T>
struct ParameterGradients {
  using Value = Pair;
  LS_HD Value First() const { return {0.0, 0.0}; }
  LS_HD Value Take(const Value& value, const Cell& cell) const {
    const double gradient = float{dy[cell.at]};
    const float distance = x[cell.at] - mean[cell.row];
    return {value.first + gradient, value.second + gradient * double{distance}};
  }
  LS_HD Value Join(const Value& a, const Value& b) const { return PairSum()(a, b); }
  LS_HD void Finish(int64_t c, const Value& sums) const {
    const double deviation = frozen ? 1.0 / SquareRoot(double{spread[c]} + epsilon) : double{spread[c]};
    const double dot = sums.second * deviation;
    if (dscale != nullptr) dscale[c] = static_cast<float>(dot);
    if (dbias != nullptr) dbias[c] = static_cast<float>(sums.first);
    const auto factor = static_cast<float>(double{scale[c]} * deviation);
    kept[c] = frozen ? GradientMap{0.0f, factor, 0.0f, 0.0f}
                     : GradientMap{mean[c], factor, static_cast<float>(sums.first / count),
                                   static_cast<float>(deviation * dot / count)};
  }

  const T* dy;
  const T* x;
  const float* scale;
  const float* mean;
  const float* spread;  // inv_std, or the variance where the statistics are frozen
  GradientMap* kept;
  float* dscale;  // or null
  float* dbias;   // or null
  double count;
  double epsilon;
  bool frozen;
};

template <bool kFrozen, typename T>
struct InputGradient {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    const GradientMap map = kept[team.row()];
    team.Each(
        [&](const Cell& cell) {
          return Inputs{dy[cell.at], kFrozen ? 0.0f : float{x[cell.at]}};
        },
        [&](const Cell& cell, const Inputs& v) {
          const float inside = kFrozen ? v.dy : v.dy - map.mean_dy - (v.x - map.mean) * map.slope;
          dx[cell.at] = map.factor * inside;
        });
  }
  const T* dy;
  const T* x;
  const GradientMap* kept;
  T* dx;
};

template <bool kFrozen, typename T>
absl::Status Gradient(const DeviceCall& call, StreamHandle stream) {
  const RowPlan plan = PlanChannels(call.input_infos[0]);
  auto* kept = reinterpret_cast<GradientMap*>(call.workspace);
  const ParameterGradients<T> gradients{.dy = call.in<T>(0),
                                        .x = call.in<T>(1),
                                        .scale = call.in<float>(2),
                                        .mean = call.in<float>(3),
                                        .spread = call.in<float>(4),
                                        .kept = kept,
                                        .dscale = call.out<float>(1),
                                        .dbias = call.out<float>(2),
                                        .count = static_cast<double>(plan.extent),
                                        .epsilon = call.attrs<BatchNormAttributes>().epsilon,
                                        .frozen = kFrozen};
  LS_RETURN_IF_ERROR(FoldRows(stream, plan, call.workspace + RowBytes<GradientMap>(plan), gradients));
  if (call.out<T>(0) == nullptr) return absl::OkStatus();
  return ForEachRow(stream, InParts(plan, 4),
                    InputGradient<kFrozen, T>{call.in<T>(0), call.in<T>(1), kept, call.out<T>(0)});
}

template <typename T>
OwnFunction BatchNormOf(OpType op, Epilogue epilogue, const RowPlan& plan) {
  const bool relu = epilogue == Epilogue::kRelu;
  const auto gradient_bytes = [&] { return RowBytes<GradientMap>(plan) + FoldBytes<ParameterGradients<T>>(plan); };
  switch (op) {
    case OpType::kBatchNormalization:
      return {relu ? &Inference<true, T> : &Inference<false, T>, "rows", 0, epilogue};
    case OpType::kBatchNormTraining:
      return {relu ? &Training<true, T> : &Training<false, T>, "fold",
              RowBytes<ChannelMap>(plan) + FoldBytes<Statistics<T>>(plan), epilogue};
    case OpType::kBatchNormGrad:
      return {&Gradient<false, T>, "fold", gradient_bytes()};
    case OpType::kBatchNormFrozenGrad:
      return {&Gradient<true, T>, "fold", gradient_bytes()};
    default:
      return {};
  }
}

}  // namespace

OwnFunction OwnBatchNorm(const KernelRequest& request) {
  if (!std::holds_alternative<BatchNormAttributes>(request.node->attributes)) return {};
  const RowPlan plan = PlanChannels(request.inputs[0]);
  if (!plan.served) return {.refusal = kOtherRows};
  return ForStoredFloat(request.outputs[0].dtype,
                        [&]<typename T>(Type<T>) { return BatchNormOf<T>(request.node->op, request.epilogue, plan); });
}

}  // namespace lockstep::device::cuda
