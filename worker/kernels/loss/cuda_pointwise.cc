// Losses of a prediction against a target of its shape, and their gradients.
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/row_kernels.h"
#include "worker/kernels/loss/pointwise.h"

namespace lockstep::device::cuda {
namespace {

struct Loss {
  using Value = double;
  LS_HD double First() const { return 0; }
  LS_HD double Take(double sum, const Cell& cell) const { return sum + Of(cell); }
  LS_HD double Join(double a, double b) const { return a + b; }
  LS_HD void Finish(int64_t, double sum) const { out[0] = static_cast<float>(sum / divisor); }

  LS_HD float Load(const Cell& cell) const { return static_cast<float>(Of(cell)); }
  LS_HD void Store(const Cell& cell, float value) const { out[cell.at] = value; }

  LS_HD double Of(const Cell& cell) const {
    return PointwiseValue(kind, delta, double{prediction[cell.at]}, double{target[cell.at]});
  }

  PointwiseLossKind kind;
  double delta;
  const float* prediction;
  const float* target;
  float* out;
  double divisor;
};

struct LossSlope {
  LS_HD float Load(const Cell& cell) const {
    const double factor = double{dloss[per_element ? cell.at : 0]} / divisor;
    return static_cast<float>(factor *
                              PointwiseSlope(kind, delta, double{prediction[cell.at]}, double{target[cell.at]}));
  }
  LS_HD void Store(const Cell& cell, float value) const { out[cell.at] = value; }

  PointwiseLossKind kind;
  double delta;
  const float* dloss;
  const float* prediction;
  const float* target;
  float* out;
  double divisor;
  bool per_element;
};

double DivisorOf(const PointwiseLossAttributes& attributes, int64_t count) {
  return attributes.reduction == Reduction::kMean ? static_cast<double>(count) : 1.0;
}

absl::Status PointwiseLoss(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<PointwiseLossAttributes>();
  const int64_t count = NumElements(call.in_shape(0));
  const Loss body{attributes.kind,   attributes.delta,   call.in<float>(0),
                  call.in<float>(1), call.out<float>(0), DivisorOf(attributes, count)};
  if (attributes.reduction == Reduction::kNone) return ForEachCell(stream, PlanAll(count), body);
  return FoldRows(stream, PlanAll(count), call.workspace, body);
}

absl::Status PointwiseLossGradient(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<PointwiseLossAttributes>();
  const int64_t count = NumElements(call.in_shape(1));
  return ForEachCell(
      stream, PlanAll(count),
      LossSlope{attributes.kind, attributes.delta, call.in<float>(0), call.in<float>(1), call.in<float>(2),
                call.out<float>(0), DivisorOf(attributes, count), attributes.reduction == Reduction::kNone});
}

}  // namespace

OwnFunction OwnPointwiseLoss(const KernelRequest& request) {
  const bool gradient = request.node->op == OpType::kPointwiseLossGrad;
  if (!gradient && request.node->op != OpType::kPointwiseLoss) return {};
  if (request.outputs[0].dtype != DType::kF32) return {.refusal = kOtherType};
  const RowPlan plan = PlanAll(NumElements(request.inputs[gradient ? 1 : 0].shape));
  if (!plan.served) return {.refusal = kOtherRows};
  if (gradient) return {&PointwiseLossGradient, "cells"};
  return {&PointwiseLoss, "fold", FoldBytes<Loss>(plan)};
}

}  // namespace lockstep::device::cuda
