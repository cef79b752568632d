// Softmax and its logarithm along an axis, and their gradients.
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/exp_sum.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/row_kernels.h"

namespace lockstep::device::cuda {
namespace {

template <bool kLogarithm, typename T>
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

  const T* x;
  T* y;
};

struct TwoValues {
  float dy;
  float y;
};

// Y * (dY - sum of dY * Y), and dY - e^Y * sum of dY.
template <bool kLogarithm, typename T>
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

  const T* dy;
  const T* y;
  T* dx;
};

RowPlan PlanOf(const DeviceCall& call) { return PlanAxis(call.in_shape(0), call.attrs<SoftmaxAttributes>().axis); }

template <bool kLogarithm, typename T>
absl::Status Softmax(const DeviceCall& call, StreamHandle stream) {
  return ForEachRow(stream, PlanOf(call), SoftmaxRow<kLogarithm, T>{call.in<T>(0), call.out<T>(0)});
}

template <bool kLogarithm, typename T>
absl::Status SoftmaxGradient(const DeviceCall& call, StreamHandle stream) {
  return ForEachRow(stream, PlanOf(call),
                    SoftmaxGradientRow<kLogarithm, T>{call.in<T>(0), call.in<T>(1), call.out<T>(0)});
}

template <typename T>
OwnFunction SoftmaxOf(OpType op) {
  switch (op) {
    case OpType::kSoftmax:
      return {&Softmax<false, T>, "rows"};
    case OpType::kLogSoftmax:
      return {&Softmax<true, T>, "rows"};
    case OpType::kSoftmaxGrad:
      return {&SoftmaxGradient<false, T>, "rows"};
    case OpType::kLogSoftmaxGrad:
      return {&SoftmaxGradient<true, T>, "rows"};
    default:
      return {};
  }
}

}  // namespace

OwnFunction OwnSoftmax(const KernelRequest& request) {
  const auto* attributes = std::get_if<SoftmaxAttributes>(&request.node->attributes);
  if (attributes == nullptr) return {};
  if (!PlanAxis(request.inputs[0].shape, attributes->axis).served) return {.refusal = kOtherRows};
  return ForStoredFloat(request.outputs[0].dtype, [&]<typename T>(Type<T>) { return SoftmaxOf<T>(request.node->op); });
}

}  // namespace lockstep::device::cuda
