#include <algorithm>
#include <cstring>
#include <limits>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lane_sum.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/window.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr int64_t kPlanesAtOnce = 16;

bool Wins(float value, float best) { return value > best || (value != value && best == best); }

// The planes of X and Y; each is computed by itself.
struct Planes {
  Planes(const Shape& x_shape, const Shape& y_shape)
      : count(x_shape[0] * x_shape[1]),
        x(SpatialOf(x_shape)),
        y(SpatialOf(y_shape)),
        x_volume(VolumeOf(x)),
        y_volume(VolumeOf(y)) {}
  int64_t count;
  Spatial x;
  Spatial y;
  int64_t x_volume;
  int64_t y_volume;

  // Calls body(plane) for every plane.
  template <typename Body>
  void ForEach(const Body& body) const {
    ParallelFor(count, kPlanesAtOnce, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) body(plane);
    });
  }
};

void MaxPlane(const Window& window, const Planes& planes, const float* x, float* y, int32_t* argmax) {
  ForEachPosition(planes.y, [&](int64_t to, const Spatial& position) {
    int64_t best = -1;
    window.ForEachInside(planes.x, position, [&](int64_t i, int64_t) {
      if (best < 0 || Wins(x[i], x[best])) best = i;
    });
    // A window of padding alone, which dilation can make, has no winner.
    y[to] = best < 0 ? -std::numeric_limits<float>::infinity() : x[best];
    if (argmax != nullptr) argmax[to] = static_cast<int32_t>(best);
  });
}

// Two by two, side by side, wholly inside: LeNet's and VGG's.
bool IsPlainTwoByTwo(const Window& window, const Planes& planes) {
  const Spatial two = {1, 2, 2};
  return window.kernel == two && window.stride == two && window.before == Spatial{0, 0, 0} &&
         window.dilation == Spatial{1, 1, 1} && planes.x[0] == 1 && planes.y[1] * 2 <= planes.x[1] &&
         planes.y[2] * 2 <= planes.x[2];
}

void MaxPlaneTwoByTwo(const Planes& planes, const float* x, float* y, int32_t* argmax) {
  const int64_t columns = planes.x[2];
  for (int64_t oh = 0; oh < planes.y[1]; ++oh) {
    const float* upper = x + 2 * oh * columns;
    const float* lower = upper + columns;
    float* to = y + oh * planes.y[2];
    int32_t* at = argmax + oh * planes.y[2];
    const auto row = static_cast<int32_t>(2 * oh * columns);
    const auto below = static_cast<int32_t>(columns);
    for (int64_t ow = 0; ow < planes.y[2]; ++ow) {
      const auto first = static_cast<int32_t>(row + 2 * ow);
      float best = upper[2 * ow];
      int32_t index = first;
      const auto consider = [&](float value, int32_t where) {
        const bool wins = Wins(value, best);
        best = wins ? value : best;
        index = wins ? where : index;
      };
      consider(upper[2 * ow + 1], first + 1);
      consider(lower[2 * ow], first + below);
      consider(lower[2 * ow + 1], first + below + 1);
      to[ow] = best;
      at[ow] = index;
    }
  }
}

void MaxPool(const HostCall& call) {
  const Window window(call.attrs<PoolAttributes>());
  const Planes planes(call.in_shape(0), call.out_shape(0));
  int32_t* argmax = call.out<int32_t>(1);
  const bool fast = argmax != nullptr && IsPlainTwoByTwo(window, planes);
  planes.ForEach([&](int64_t plane) {
    const float* from = call.in<float>(0) + plane * planes.x_volume;
    float* to = call.out<float>(0) + plane * planes.y_volume;
    int32_t* at = argmax == nullptr ? nullptr : argmax + plane * planes.y_volume;
    if (fast) {
      MaxPlaneTwoByTwo(planes, from, to, at);
    } else {
      MaxPlane(window, planes, from, to, at);
    }
  });
}

void MaxPoolGrad(const HostCall& call) {
  const Planes planes(call.out_shape(0), call.in_shape(0));
  planes.ForEach([&](int64_t plane) {
    const float* dy = call.in<float>(0) + plane * planes.y_volume;
    const int32_t* argmax = call.in<int32_t>(1) + plane * planes.y_volume;
    float* dx = call.out<float>(0) + plane * planes.x_volume;
    std::memset(dx, 0, static_cast<size_t>(planes.x_volume) * sizeof(float));
    for (int64_t j = 0; j < planes.y_volume; ++j) {
      if (argmax[j] >= 0) dx[argmax[j]] += dy[j];
    }
  });
}

void AveragePool(const HostCall& call) {
  const auto& attributes = call.attrs<PoolAttributes>();
  const Window window(attributes);
  const Planes planes(call.in_shape(0), call.out_shape(0));
  planes.ForEach([&](int64_t plane) {
    const float* x = call.in<float>(0) + plane * planes.x_volume;
    float* y = call.out<float>(0) + plane * planes.y_volume;
    ForEachPosition(planes.y, [&](int64_t to, const Spatial& position) {
      float sum = 0;
      window.ForEachInside(planes.x, position, [&](int64_t i, int64_t) { sum += x[i]; });
      const int64_t count = window.Count(planes.x, position, attributes.count_include_pad);
      y[to] = count == 0 ? 0.0f : sum / static_cast<float>(count);
    });
  });
}

void AveragePoolGrad(const HostCall& call) {
  const auto& attributes = call.attrs<PoolAttributes>();
  const Window window(attributes);
  const Planes planes(call.out_shape(0), call.in_shape(0));
  planes.ForEach([&](int64_t plane) {
    const float* dy = call.in<float>(0) + plane * planes.y_volume;
    float* dx = call.out<float>(0) + plane * planes.x_volume;
    std::memset(dx, 0, static_cast<size_t>(planes.x_volume) * sizeof(float));
    ForEachPosition(planes.y, [&](int64_t from, const Spatial& position) {
      const int64_t count = window.Count(planes.x, position, attributes.count_include_pad);
      const float share = dy[from] / static_cast<float>(count);
      window.ForEachInside(planes.x, position, [&](int64_t i, int64_t) { dx[i] += share; });
    });
  });
}

void GlobalAverage(const HostCall& call) {
  const Planes planes(call.in_shape(0), call.out_shape(0));
  planes.ForEach([&](int64_t plane) {
    const float* x = call.in<float>(0) + plane * planes.x_volume;
    const double sum = LaneSum(planes.x_volume, [x](int64_t i) { return double{x[i]}; });
    call.out<float>(0)[plane] = static_cast<float>(sum / static_cast<double>(planes.x_volume));
  });
}

void GlobalMax(const HostCall& call) {
  const Planes planes(call.in_shape(0), call.out_shape(0));
  planes.ForEach([&](int64_t plane) {
    const float* x = call.in<float>(0) + plane * planes.x_volume;
    float best = x[0];
    for (int64_t i = 1; i < planes.x_volume; ++i) best = Wins(x[i], best) ? x[i] : best;
    call.out<float>(0)[plane] = best;
  });
}

}  // namespace

OwnFunction OwnPooling(const KernelRequest& request) {
  switch (request.node->op) {
    case OpType::kMaxPool:
    case OpType::kMaxPoolWithArgmax:
      return {&MaxPool, "own:max_pool"};
    case OpType::kMaxPoolGrad:
      return {&MaxPoolGrad, "own:max_pool"};
    case OpType::kAveragePool:
      return {&AveragePool, "own:average_pool"};
    case OpType::kAveragePoolGrad:
      return {&AveragePoolGrad, "own:average_pool"};
    case OpType::kGlobalAveragePool:
      return {&GlobalAverage, "own:global_pool"};
    case OpType::kGlobalMaxPool:
      return {&GlobalMax, "own:global_pool"};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
