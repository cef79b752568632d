// Softmax, its logarithm, cross entropy and their gradients, where planes follow the axis of the classes, as in images:
// some neighbours of a plane at a time, class by class.
#include <algorithm>

#include "common/math/math.h"
#include "worker/kernels/axis_shapes.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/label_shapes.h"
#include "worker/kernels/softmax/cpu_losses.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr int64_t kGrain = 16384;  // elements
constexpr int64_t kBlock = 64;     // neighbours at a time

// Neighbours of a plane: the first one's element of class 0, its row, and how many they are.
struct Block {
  int64_t at;
  int64_t row;
  int64_t count;
};

template <typename Body>
void ForBlocks(int64_t outer, int64_t classes, int64_t inner, const Body& body) {
  const int64_t blocks = (inner + kBlock - 1) / kBlock;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, classes * kBlock));
  ParallelFor(outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kBlock;
      body(Block{i / blocks * classes * inner + first, i / blocks * inner + first, std::min(kBlock, inner - first)});
    }
  });
}

// The largest score of each neighbour, and the sum of the exponentials over it. A NaN is one in the sum.
struct Totals {
  float largest[kBlock];
  double sum[kBlock];

  Totals(const float* x, int64_t classes, int64_t inner, int64_t count) {
    for (int64_t i = 0; i < count; ++i) largest[i] = x[i];
    for (int64_t c = 1; c < classes; ++c) {
      const float* row = x + c * inner;
      for (int64_t i = 0; i < count; ++i) largest[i] = row[i] > largest[i] ? row[i] : largest[i];
    }
    for (int64_t i = 0; i < count; ++i) sum[i] = 0;
    for (int64_t c = 0; c < classes; ++c) {
      const float* row = x + c * inner;
      for (int64_t i = 0; i < count; ++i) sum[i] += double{Exp(row[i] - largest[i])};
    }
  }
};

void Softmax(const HostCall& call) {
  const AxisExtents e(call.attrs<SoftmaxAttributes>().axis, call.in_shape(0));
  ForBlocks(e.outer, e.extent, e.inner, [&](const Block& block) {
    const float* x = call.in<float>(0) + block.at;
    float* y = call.out<float>(0) + block.at;
    const Totals totals(x, e.extent, e.inner, block.count);
    float factor[kBlock];
    for (int64_t i = 0; i < block.count; ++i) factor[i] = static_cast<float>(1.0 / totals.sum[i]);
    for (int64_t c = 0; c < e.extent * e.inner; c += e.inner) {
      for (int64_t i = 0; i < block.count; ++i) y[c + i] = Exp(x[c + i] - totals.largest[i]) * factor[i];
    }
  });
}

void LogSoftmax(const HostCall& call) {
  const AxisExtents e(call.attrs<SoftmaxAttributes>().axis, call.in_shape(0));
  ForBlocks(e.outer, e.extent, e.inner, [&](const Block& block) {
    const float* x = call.in<float>(0) + block.at;
    float* y = call.out<float>(0) + block.at;
    const Totals totals(x, e.extent, e.inner, block.count);
    float log_sum[kBlock];
    for (int64_t i = 0; i < block.count; ++i) log_sum[i] = static_cast<float>(Log(totals.sum[i]));
    for (int64_t c = 0; c < e.extent * e.inner; c += e.inner) {
      for (int64_t i = 0; i < block.count; ++i) y[c + i] = x[c + i] - totals.largest[i] - log_sum[i];
    }
  });
}

// dX = finish(dY, Y, sum), where the sum is of value(dY, Y) over the classes.
template <typename Value, typename Finish>
void Gradient(const HostCall& call, const Value& value, const Finish& finish) {
  const AxisExtents e(call.attrs<SoftmaxAttributes>().axis, call.in_shape(0));
  ForBlocks(e.outer, e.extent, e.inner, [&](const Block& block) {
    const float* dy = call.in<float>(0) + block.at;
    const float* y = call.in<float>(1) + block.at;
    float* dx = call.out<float>(0) + block.at;
    double sums[kBlock] = {};
    for (int64_t c = 0; c < e.extent * e.inner; c += e.inner) {
      for (int64_t i = 0; i < block.count; ++i) sums[i] += value(dy[c + i], y[c + i]);
    }
    float sum[kBlock];
    for (int64_t i = 0; i < block.count; ++i) sum[i] = static_cast<float>(sums[i]);
    for (int64_t c = 0; c < e.extent * e.inner; c += e.inner) {
      for (int64_t i = 0; i < block.count; ++i) dx[c + i] = finish(dy[c + i], y[c + i], sum[i]);
    }
  });
}

void SoftmaxGrad(const HostCall& call) {
  Gradient(
      call, [](float dy, float y) { return double{dy} * y; },
      [](float dy, float y, float dot) { return y * (dy - dot); });
}

void LogSoftmaxGrad(const HostCall& call) {
  Gradient(
      call, [](float dy, float) { return double{dy}; }, [](float dy, float y, float sum) { return dy - Exp(y) * sum; });
}

void CrossEntropy(const HostCall& call) {
  const LabelExtents e(call.in_shape(0));
  const Labels labels(call, 1, call.attrs<CrossEntropyAttributes>().ignore_index, e.classes);
  auto* losses = reinterpret_cast<double*>(call.workspace);
  ForBlocks(e.batch, e.classes, e.inner, [&](const Block& block) {
    const float* x = call.in<float>(0) + block.at;
    const Totals totals(x, e.classes, e.inner, block.count);
    for (int64_t i = 0; i < block.count; ++i) {
      const int64_t row = block.row + i;
      const double log_sum = Log(totals.sum[i]);
      if (float* statistics = call.out<float>(2); statistics != nullptr) {
        statistics[2 * row] = totals.largest[i];
        statistics[2 * row + 1] = static_cast<float>(log_sum);
      }
      if (float* log_prob = call.out<float>(1); log_prob != nullptr) {
        for (int64_t c = i; c < e.classes * e.inner; c += e.inner) {
          log_prob[block.at + c] = x[c] - totals.largest[i] - static_cast<float>(log_sum);
        }
      }
      const Labels::Label label = labels.at(row);
      const float own = label.valid ? x[label.index * e.inner + i] : 0.0f;
      losses[row] = LossOf(label, call.in<float>(2), log_sum + totals.largest[i] - own);
    }
  });
  WriteLoss(call, labels, losses, e.rows());
}

// From log_prob, or from the scores and their statistics.
void CrossEntropyGrad(const HostCall& call) {
  const LabelExtents e(call.in_shape(1));
  const Labels labels(call, 2, call.attrs<CrossEntropyAttributes>().ignore_index, e.classes);
  const RowFactors factors(call, labels, e.rows());
  const float* statistics = call.in<float>(4);
  ForBlocks(e.batch, e.classes, e.inner, [&](const Block& block) {
    const float* x = call.in<float>(1) + block.at;
    float* dx = call.out<float>(0) + block.at;
    float largest[kBlock], log_sum[kBlock], scale[kBlock];
    int32_t ignored[kBlock];
    for (int64_t i = 0; i < block.count; ++i) {
      const int64_t row = block.row + i;
      const Labels::Label label = labels.at(row);
      largest[i] = statistics != nullptr ? statistics[2 * row] : 0.0f;
      log_sum[i] = statistics != nullptr ? statistics[2 * row + 1] : 0.0f;
      scale[i] = factors.at(row, label);
      ignored[i] = label.ignored ? 1 : 0;
    }
    for (int64_t c = 0; c < e.classes * e.inner; c += e.inner) {
      for (int64_t i = 0; i < block.count; ++i) {
        const float gradient = scale[i] * Exp(x[c + i] - largest[i] - log_sum[i]);
        dx[c + i] = ignored[i] != 0 ? 0.0f : gradient;
      }
    }
    for (int64_t i = 0; i < block.count; ++i) {
      const Labels::Label label = labels.at(block.row + i);
      if (!label.valid) continue;
      const int64_t at = label.index * e.inner + i;
      dx[at] = scale[i] * (Exp(x[at] - largest[i] - log_sum[i]) - 1.0f);
    }
  });
}

}  // namespace

OwnFunction OwnPlaneSoftmax(const KernelRequest& request) {
  switch (request.node->op) {
    case OpType::kSoftmax:
      return {&Softmax, "own:softmax_planes"};
    case OpType::kSoftmaxGrad:
      return {&SoftmaxGrad, "own:softmax_planes"};
    case OpType::kLogSoftmax:
      return {&LogSoftmax, "own:log_softmax_planes"};
    case OpType::kLogSoftmaxGrad:
      return {&LogSoftmaxGrad, "own:log_softmax_planes"};
    case OpType::kSoftmaxCrossEntropyLoss: {
      const auto rows = static_cast<size_t>(LabelExtents(request.inputs[0].shape).rows());
      return {.function = &CrossEntropy, .name = "own:cross_entropy_planes", .workspace_bytes = rows * sizeof(double)};
    }
    case OpType::kSoftmaxCrossEntropyLossGrad:
      return {&CrossEntropyGrad, "own:cross_entropy_planes"};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
