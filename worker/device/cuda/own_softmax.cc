// Softmax and its logarithm along an axis, and their gradients.
#include "worker/device/cuda/code.h"
#include "worker/device/cuda/exp_sum.h"
#include "worker/device/cuda/own_families.h"
#include "worker/device/cuda/row_kernels.h"

namespace lockstep::device::cuda {
namespace {

template <bool kLogarithm>
struct SoftmaxRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    ExpSum sum = ExpSum::OfNothing();
    team.Each([&](const Cell& cell) { sum = sum.Plus(x[cell.at]); });
    sum = team.FoldLanes(sum, [](const ExpSum& a, const ExpSum& b) { return ExpSum::Join(a, b); });
    const float factor = kLogarithm ? Log(sum.sum) : 1.0f / sum.sum;
    team.Each([&](const Cell& cell) { return x[cell.at]; },
              [&](const Cell& cell, float value) {
                const float exponent = value - sum.largest;
                y[cell.at] = kLogarithm ? exponent - factor : Exp(exponent) * factor;
              });
  }

  const float* x;
  float* y;
};

struct TwoValues {
  float dy;
  float y;
};

// Y * (dY - sum of dY * Y), and dY - e^Y * sum of dY.
template <bool kLogarithm>
struct SoftmaxGradientRow {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    double sum = 0;
    team.Each(
        [&](const Cell& cell) { sum += kLogarithm ? double{dy[cell.at]} : double{dy[cell.at]} * double{y[cell.at]}; });
    const auto total = static_cast<float>(team.Sum(sum));
    team.Each(
        [&](const Cell& cell) {
          return TwoValues{dy[cell.at], y[cell.at]};
        },
        [&](const Cell& cell, const TwoValues& v) {
          dx[cell.at] = kLogarithm ? v.dy - Exp(v.y) * total : v.y * (v.dy - total);
        });
  }

  const float* dy;
  const float* y;
  float* dx;
};

RowPlan PlanOf(const DeviceCall& call) { return PlanAxis(call.in_shape(0), call.attrs<SoftmaxAttributes>().axis); }

template <bool kLogarithm>
absl::Status Softmax(const DeviceCall& call, StreamHandle stream) {
  return ForEachRow(stream, PlanOf(call), SoftmaxRow<kLogarithm>{call.in<float>(0), call.out<float>(0)});
}

template <bool kLogarithm>
absl::Status SoftmaxGradient(const DeviceCall& call, StreamHandle stream) {
  return ForEachRow(stream, PlanOf(call),
                    SoftmaxGradientRow<kLogarithm>{call.in<float>(0), call.in<float>(1), call.out<float>(0)});
}

}  // namespace

OwnFunction OwnSoftmax(const KernelRequest& request) {
  if (request.outputs[0].dtype != DType::kF32) return {};
  const auto* attributes = std::get_if<SoftmaxAttributes>(&request.node->attributes);
  if (attributes == nullptr || !PlanAxis(request.inputs[0].shape, attributes->axis).served) return {};
  switch (request.node->op) {
    case OpType::kSoftmax:
      return {&Softmax<false>, "rows"};
    case OpType::kLogSoftmax:
      return {&Softmax<true>, "rows"};
    case OpType::kSoftmaxGrad:
      return {&SoftmaxGradient<false>, "rows"};
    case OpType::kLogSoftmaxGrad:
      return {&SoftmaxGradient<true>, "rows"};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cuda
