// Normalisation of groups of channels, forward and backward.
#include <algorithm>

#include "common/math/math.h"
#include "worker/kernels/axis_shapes.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lane_sum.h"
#include "worker/kernels/cpu/parallel.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr char kName[] = "own:group_norm";  // outlives every OwnFunction
constexpr int64_t kGrain = 16384;           // elements

struct Statistics {
  double mean;
  double inv_std;
};

Statistics StatisticsOf(const float* x, int64_t width, double epsilon) {
  const auto count = static_cast<double>(width);
  const double mean = LaneSum(width, [x](int64_t i) { return double{x[i]}; }) / count;
  const double squares = LaneSum(width, [x, mean](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  return {mean, 1.0 / SquareRoot(squares / count + epsilon)};
}

void Forward(const HostCall& call) {
  const auto& attributes = call.attrs<GroupNormAttributes>();
  const GroupExtents e(attributes.num_groups, call.in_shape(0));
  if (e.width() == 0) return;
  ParallelFor(e.rows, std::max<int64_t>(1, kGrain / e.width()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* x = call.in<float>(0) + row * e.width();
      float* y = call.out<float>(0) + row * e.width();
      const Statistics s = StatisticsOf(x, e.width(), attributes.epsilon);
      const auto mean = static_cast<float>(s.mean);
      const auto inv_std = static_cast<float>(s.inv_std);
      for (int64_t c = 0; c < e.channels; ++c, x += e.plane, y += e.plane) {
        const int64_t channel = e.channel(row, c * e.plane);
        const float scale = call.in<float>(1)[channel];
        const float bias = call.in<float>(2)[channel];
        for (int64_t i = 0; i < e.plane; ++i) y[i] = (x[i] - mean) * inv_std * scale + bias;
      }
    }
  });
}

// Of a channel in one sample.
struct ChannelSums {
  double dy;
  double dot;  // of dY and the normalised X
};

// dX of a row, and the sums of its channels.
void BackwardRow(const HostCall& call, const GroupExtents& e, int64_t row, double epsilon, ChannelSums* sums) {
  const float* dy = call.in<float>(0) + row * e.width();
  const float* x = call.in<float>(1) + row * e.width();
  const Statistics s = StatisticsOf(x, e.width(), epsilon);
  const auto mean = static_cast<float>(s.mean);
  const auto inv_std = static_cast<float>(s.inv_std);
  double sum = 0;
  double dot = 0;
  for (int64_t c = 0; c < e.channels; ++c) {
    const float* const g = dy + c * e.plane;
    const float* const v = x + c * e.plane;
    sums[c].dy = LaneSum(e.plane, [g](int64_t i) { return double{g[i]}; });
    sums[c].dot = LaneSum(e.plane, [=](int64_t i) { return double{g[i]} * ((v[i] - mean) * inv_std); });
    const auto scale = static_cast<double>(call.in<float>(2)[e.channel(row, c * e.plane)]);
    sum += scale * sums[c].dy;
    dot += scale * sums[c].dot;
  }
  if (call.out<float>(0) == nullptr) return;
  const auto count = static_cast<double>(e.width());
  const auto mean_g = static_cast<float>(sum / count);
  const auto slope = static_cast<float>(dot / count);
  float* dx = call.out<float>(0) + row * e.width();
  for (int64_t c = 0; c < e.channels; ++c) {
    const float scale = call.in<float>(2)[e.channel(row, c * e.plane)];
    for (int64_t i = c * e.plane; i < (c + 1) * e.plane; ++i) {
      dx[i] = inv_std * (dy[i] * scale - mean_g - (x[i] - mean) * inv_std * slope);
    }
  }
}

// The sums of a channel are those of its samples, in their order.
void Backward(const HostCall& call) {
  const auto& attributes = call.attrs<GroupNormAttributes>();
  const GroupExtents e(attributes.num_groups, call.in_shape(1));
  auto* sums = reinterpret_cast<ChannelSums*>(call.workspace);
  if (e.width() > 0) {
    ParallelFor(e.rows, std::max<int64_t>(1, kGrain / e.width()), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        BackwardRow(call, e, row, attributes.epsilon, sums + row * e.channels);
      }
    });
  }
  const int64_t samples = e.width() == 0 ? 0 : call.in_shape(1)[0];
  for (int64_t c = 0; c < e.all_channels; ++c) {
    ChannelSums total = {0, 0};
    for (int64_t n = 0; n < samples; ++n) {
      total.dy += sums[n * e.all_channels + c].dy;
      total.dot += sums[n * e.all_channels + c].dot;
    }
    if (call.out<float>(1) != nullptr) call.out<float>(1)[c] = static_cast<float>(total.dot);
    if (call.out<float>(2) != nullptr) call.out<float>(2)[c] = static_cast<float>(total.dy);
  }
}

}  // namespace

OwnFunction OwnGroupNorm(const KernelRequest& request) {
  switch (request.node->op) {
    case OpType::kGroupNormalization:
    case OpType::kInstanceNormalization:
      return {&Forward, kName};
    case OpType::kGroupNormGrad: {
      const Shape& x = request.inputs[1].shape;
      return {.function = &Backward,
              .name = kName,
              .workspace_bytes = static_cast<size_t>(x[0] * x[1]) * sizeof(ChannelSums)};
    }
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
