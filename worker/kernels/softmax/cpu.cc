// Softmax, its logarithm, cross entropy and their gradients, where the elements of a row lie side by side.
#include <algorithm>

#include "common/math/math.h"
#include "worker/kernels/axis_shapes.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lane_sum.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/label_shapes.h"
#include "worker/kernels/softmax/cpu_losses.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr int64_t kGrain = 16384;

// Calls body(row) for every row, some rows in each thread.
template <typename Body>
void ForRows(int64_t rows, int64_t width, const Body& body) {
  ParallelFor(rows, std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

// A NaN in x is one in its exponential, and so in the sum.
double SumOfExponentials(const float* x, int64_t width, float largest) {
  return LaneSum(width, [=](int64_t i) { return double{Exp(x[i] - largest)}; });
}

void Softmax(const HostCall& call) {
  const AxisExtents e(call.attrs<SoftmaxAttributes>().axis, call.in_shape(0));
  ForRows(e.outer, e.extent, [&](int64_t row) {
    const float* x = call.in<float>(0) + row * e.extent;
    float* y = call.out<float>(0) + row * e.extent;
    const float largest = LaneMax(x, e.extent);
    for (int64_t i = 0; i < e.extent; ++i) y[i] = Exp(x[i] - largest);
    const auto factor = static_cast<float>(1.0 / LaneSum(e.extent, [y](int64_t i) { return double{y[i]}; }));
    for (int64_t i = 0; i < e.extent; ++i) y[i] *= factor;
  });
}

void SoftmaxGrad(const HostCall& call) {
  const AxisExtents e(call.attrs<SoftmaxAttributes>().axis, call.in_shape(0));
  ForRows(e.outer, e.extent, [&](int64_t row) {
    const float* dy = call.in<float>(0) + row * e.extent;
    const float* y = call.in<float>(1) + row * e.extent;
    float* dx = call.out<float>(0) + row * e.extent;
    const auto dot = static_cast<float>(LaneSum(e.extent, [=](int64_t i) { return double{dy[i]} * y[i]; }));
    for (int64_t i = 0; i < e.extent; ++i) dx[i] = y[i] * (dy[i] - dot);
  });
}

void LogSoftmax(const HostCall& call) {
  const AxisExtents e(call.attrs<SoftmaxAttributes>().axis, call.in_shape(0));
  ForRows(e.outer, e.extent, [&](int64_t row) {
    const float* x = call.in<float>(0) + row * e.extent;
    float* y = call.out<float>(0) + row * e.extent;
    const float largest = LaneMax(x, e.extent);
    const auto log_sum = static_cast<float>(Log(SumOfExponentials(x, e.extent, largest)));
    for (int64_t i = 0; i < e.extent; ++i) y[i] = x[i] - largest - log_sum;
  });
}

void LogSoftmaxGrad(const HostCall& call) {
  const AxisExtents e(call.attrs<SoftmaxAttributes>().axis, call.in_shape(0));
  ForRows(e.outer, e.extent, [&](int64_t row) {
    const float* dy = call.in<float>(0) + row * e.extent;
    const float* y = call.in<float>(1) + row * e.extent;
    float* dx = call.out<float>(0) + row * e.extent;
    const auto sum = static_cast<float>(LaneSum(e.extent, [dy](int64_t i) { return double{dy[i]}; }));
    for (int64_t i = 0; i < e.extent; ++i) dx[i] = dy[i] - Exp(y[i]) * sum;
  });
}

// Rows run side by side and leave their losses in the workspace; these are added in index order.
void CrossEntropy(const HostCall& call) {
  const LabelExtents e(call.in_shape(0));
  const Labels labels(call, 1, call.attrs<CrossEntropyAttributes>().ignore_index, e.classes);
  auto* losses = reinterpret_cast<double*>(call.workspace);
  ForRows(e.batch, e.classes, [&](int64_t row) {
    const float* x = call.in<float>(0) + row * e.classes;
    const float largest = LaneMax(x, e.classes);
    const double log_sum = Log(SumOfExponentials(x, e.classes, largest));
    if (float* log_prob = call.out<float>(1); log_prob != nullptr) {
      const auto shift = static_cast<float>(log_sum);
      for (int64_t i = 0; i < e.classes; ++i) log_prob[row * e.classes + i] = x[i] - largest - shift;
    }
    if (float* statistics = call.out<float>(2); statistics != nullptr) {
      statistics[2 * row] = largest;
      statistics[2 * row + 1] = static_cast<float>(log_sum);
    }
    const Labels::Label label = labels.at(row);
    losses[row] = LossOf(label, call.in<float>(2), log_sum + largest - (label.valid ? x[label.index] : 0.0f));
  });
  WriteLoss(call, labels, losses, e.batch);
}

// From log_prob, or from the scores and their statistics: the same bits.
void CrossEntropyGrad(const HostCall& call) {
  const LabelExtents e(call.in_shape(1));
  const Labels labels(call, 2, call.attrs<CrossEntropyAttributes>().ignore_index, e.classes);
  const RowFactors factors(call, labels, e.batch);
  const float* statistics = call.in<float>(4);
  ForRows(e.batch, e.classes, [&](int64_t row) {
    const float* x = call.in<float>(1) + row * e.classes;
    const float largest = statistics != nullptr ? statistics[2 * row] : 0.0f;
    const float log_sum = statistics != nullptr ? statistics[2 * row + 1] : 0.0f;
    float* dx = call.out<float>(0) + row * e.classes;
    const Labels::Label label = labels.at(row);
    if (label.ignored) {
      std::fill_n(dx, e.classes, 0.0f);
      return;
    }
    const float scale = factors.at(row, label);
    for (int64_t i = 0; i < e.classes; ++i) dx[i] = scale * Exp(x[i] - largest - log_sum);
    if (label.valid) dx[label.index] = scale * (Exp(x[label.index] - largest - log_sum) - 1.0f);
  });
}

// A row's elements are neighbours when nothing follows their axis.
bool RowsAreDense(const KernelRequest& request) {
  if (const auto* softmax = std::get_if<SoftmaxAttributes>(&request.node->attributes)) {
    return AxisExtents(softmax->axis, request.inputs[0].shape).inner == 1;
  }
  const bool grad = request.node->op == OpType::kSoftmaxCrossEntropyLossGrad;
  return LabelExtents(request.inputs[grad ? 1 : 0].shape).inner == 1;
}

}  // namespace

OwnFunction OwnSoftmax(const KernelRequest& request) {
  OwnFunction own;
  switch (request.node->op) {
    case OpType::kSoftmax:
      own = {&Softmax, "own:softmax"};
      break;
    case OpType::kSoftmaxGrad:
      own = {&SoftmaxGrad, "own:softmax"};
      break;
    case OpType::kLogSoftmax:
      own = {&LogSoftmax, "own:log_softmax"};
      break;
    case OpType::kLogSoftmaxGrad:
      own = {&LogSoftmaxGrad, "own:log_softmax"};
      break;
    case OpType::kSoftmaxCrossEntropyLoss:
      own = {&CrossEntropy, "own:cross_entropy"};
      own.workspace_bytes = static_cast<size_t>(request.inputs[0].shape[0]) * sizeof(double);
      break;
    case OpType::kSoftmaxCrossEntropyLossGrad:
      own = {&CrossEntropyGrad, "own:cross_entropy"};
      break;
    default:
      return {};
  }
  return RowsAreDense(request) ? own : OwnPlaneSoftmax(request);
}

}  // namespace lockstep::device::cpu::LS_CODE
