// Losses of a prediction against a target, and the negative log likelihood.
#include <algorithm>
#include <cstdint>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lane_sum.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/label_shapes.h"
#include "worker/kernels/loss/pointwise.h"
#include "worker/kernels/softmax/cpu_losses.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr int64_t kGrain = 16384;  // elements
constexpr int64_t kBlock = 4096;   // elements of a sum at a time
constexpr char kName[] = "own:loss";

int64_t BlocksOf(int64_t count) { return (count + kBlock - 1) / kBlock; }

template <PointwiseLossKind kKind>
[[gnu::flatten]] double ValueOf(double delta, float x, float t) {
  return PointwiseValue(kKind, delta, x, t);
}

// Blocks are summed up side by side, then in their order.
template <PointwiseLossKind kKind>
void Pointwise(const HostCall& call) {
  const auto& attributes = call.attrs<PointwiseLossAttributes>();
  const double delta = attributes.delta;
  const float* x = call.in<float>(0);
  const float* t = call.in<float>(1);
  float* y = call.out<float>(0);
  const int64_t count = NumElements(call.in_shape(0));
  if (attributes.reduction == Reduction::kNone) {
    ParallelFor(count, kGrain, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) y[i] = static_cast<float>(ValueOf<kKind>(delta, x[i], t[i]));
    });
    return;
  }
  auto* sums = reinterpret_cast<double*>(call.workspace);
  ParallelFor(BlocksOf(count), kGrain / kBlock, [=](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock;
      sums[block] = LaneSum(std::min(kBlock, count - first),
                            [=](int64_t i) { return ValueOf<kKind>(delta, x[first + i], t[first + i]); });
    }
  });
  double sum = 0;
  for (int64_t block = 0; block < BlocksOf(count); ++block) sum += sums[block];
  y[0] = static_cast<float>(attributes.reduction == Reduction::kMean ? sum / static_cast<double>(count) : sum);
}

template <PointwiseLossKind kKind>
void PointwiseGrad(const HostCall& call) {
  const auto& attributes = call.attrs<PointwiseLossAttributes>();
  const double delta = attributes.delta;
  const float* dloss = call.in<float>(0);
  const float* x = call.in<float>(1);
  const float* t = call.in<float>(2);
  float* dx = call.out<float>(0);
  const int64_t count = NumElements(call.in_shape(1));
  if (attributes.reduction == Reduction::kNone) {
    ParallelFor(count, kGrain, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        dx[i] = static_cast<float>(dloss[i] * PointwiseSlope(kKind, delta, x[i], t[i]));
      }
    });
    return;
  }
  const double divisor = attributes.reduction == Reduction::kMean ? static_cast<double>(count) : 1.0;
  const double factor = dloss[0] / divisor;
  ParallelFor(count, kGrain, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      dx[i] = static_cast<float>(factor * PointwiseSlope(kKind, delta, x[i], t[i]));
    }
  });
}

template <PointwiseLossKind kKind>
HostFunction OfKind(bool gradient) {
  return gradient ? &PointwiseGrad<kKind> : &Pointwise<kKind>;
}

HostFunction PointwiseFunction(PointwiseLossKind kind, bool gradient) {
  switch (kind) {
    case PointwiseLossKind::kMse:
      return OfKind<PointwiseLossKind::kMse>(gradient);
    case PointwiseLossKind::kL1:
      return OfKind<PointwiseLossKind::kL1>(gradient);
    case PointwiseLossKind::kHuber:
      return OfKind<PointwiseLossKind::kHuber>(gradient);
    case PointwiseLossKind::kBceWithLogits:
      return OfKind<PointwiseLossKind::kBceWithLogits>(gradient);
  }
  return nullptr;
}

void Likelihood(const HostCall& call) {
  const LabelExtents e(call.in_shape(0));
  const Labels labels(call, 1, call.attrs<CrossEntropyAttributes>().ignore_index, e.classes);
  auto* losses = reinterpret_cast<double*>(call.workspace);
  for (int64_t row = 0; row < e.rows(); ++row) {
    const Labels::Label label = labels.at(row);
    const float log_prob = label.valid ? call.in<float>(0)[e.base(row) + label.index * e.inner] : 0.0f;
    losses[row] = LossOf(label, call.in<float>(2), -double{log_prob});
  }
  WriteLoss(call, labels, losses, e.rows());
}

// The factor of a row, by what each class adds to its gradient: -1 at the label, else 0.
void LikelihoodGrad(const HostCall& call) {
  const LabelExtents e(call.in_shape(1));
  const Labels labels(call, 2, call.attrs<CrossEntropyAttributes>().ignore_index, e.classes);
  const RowFactors factors(call, labels, e.rows());
  ParallelFor(e.batch, std::max<int64_t>(1, kGrain / (e.classes * e.inner)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * e.inner; row < end * e.inner; ++row) {
      const Labels::Label label = labels.at(row);
      const float factor = label.ignored ? 0.0f : factors.at(row, label);
      float* dx = call.out<float>(0) + e.base(row);
      for (int64_t c = 0; c < e.classes; ++c) dx[c * e.inner] = factor * 0.0f;
      if (label.valid) dx[label.index * e.inner] = -factor;
    }
  });
}

}  // namespace

OwnFunction OwnLoss(const KernelRequest& request) {
  const OpType op = request.node->op;
  switch (op) {
    case OpType::kPointwiseLoss:
    case OpType::kPointwiseLossGrad: {
      const bool gradient = op == OpType::kPointwiseLossGrad;
      const auto blocks = gradient ? 0 : static_cast<size_t>(BlocksOf(NumElements(request.inputs[0].shape)));
      return {.function = PointwiseFunction(AttributesOf<PointwiseLossAttributes>(request).kind, gradient),
              .name = kName,
              .workspace_bytes = blocks * sizeof(double)};
    }
    case OpType::kNegativeLogLikelihoodLoss:
      return {.function = &Likelihood,
              .name = kName,
              .workspace_bytes = static_cast<size_t>(LabelExtents(request.inputs[0].shape).rows()) * sizeof(double)};
    case OpType::kNegativeLogLikelihoodLossGrad:
      return {&LikelihoodGrad, kName};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
