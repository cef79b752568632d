#include <cstring>
#include <limits>

#include "worker/device/cpu/own_kernels.h"
#include "worker/device/cpu/parallel.h"
#include "worker/device/window.h"

namespace lockstep::device::cpu {
namespace {

// One plane. Windows inside the input take the short way, the others test every position.
struct PlanePooling {
  Window window;
  int64_t in_rows, in_columns, out_rows, out_columns;

  static bool Wins(float value, float best) { return value > best || (value != value && best == best); }

  int64_t Best(const float* x, int64_t oh, int64_t ow) const {
    int64_t best = -1;
    for (int64_t kh = 0; kh < window.kernel_height; ++kh) {
      const int64_t ih = window.row(oh, kh);
      if (ih < 0 || ih >= in_rows) continue;
      for (int64_t kw = 0; kw < window.kernel_width; ++kw) {
        const int64_t iw = window.column(ow, kw);
        if (iw < 0 || iw >= in_columns) continue;
        const int64_t at = ih * in_columns + iw;
        if (best < 0 || Wins(x[at], x[best])) best = at;
      }
    }
    return best;
  }

  void Run(const float* x, float* y, int32_t* argmax) const {
    for (int64_t oh = 0; oh < out_rows; ++oh) {
      for (int64_t ow = 0; ow < out_columns; ++ow) {
        const int64_t best = Best(x, oh, ow);
        // A window of padding alone, which dilation can make, has no winner.
        y[oh * out_columns + ow] = best < 0 ? -std::numeric_limits<float>::infinity() : x[best];
        if (argmax != nullptr) argmax[oh * out_columns + ow] = static_cast<int32_t>(best);
      }
    }
  }

  // Two by two, side by side, wholly inside: LeNet's and VGG's.
  bool IsPlainTwoByTwo() const {
    return window.kernel_height == 2 && window.kernel_width == 2 && window.stride_height == 2 &&
           window.stride_width == 2 && window.top == 0 && window.left == 0 && window.dilation_height == 1 &&
           window.dilation_width == 1 && out_rows * 2 <= in_rows && out_columns * 2 <= in_columns;
  }

  void RunTwoByTwo(const float* x, float* y, int32_t* argmax) const {
    for (int64_t oh = 0; oh < out_rows; ++oh) {
      const float* upper = x + 2 * oh * in_columns;
      const float* lower = upper + in_columns;
      float* to = y + oh * out_columns;
      int32_t* at = argmax + oh * out_columns;
      const auto row = static_cast<int32_t>(2 * oh * in_columns);
      const auto below = static_cast<int32_t>(in_columns);
      for (int64_t ow = 0; ow < out_columns; ++ow) {
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
};

PlanePooling PlaneOf(const HostCall& call) {
  const Shape& x = call.in_shape(0);
  const Shape& y = call.out_shape(0);
  return {Window(call.attrs<PoolAttributes>()), x[2], x[3], y[2], y[3]};
}

void MaxPool(const HostCall& call) {
  const PlanePooling plane = PlaneOf(call);
  const Shape& y = call.out_shape(0);
  const int64_t in_size = plane.in_rows * plane.in_columns;
  const int64_t out_size = plane.out_rows * plane.out_columns;
  int32_t* argmax = call.out<int32_t>(1);
  const bool fast = argmax != nullptr && plane.IsPlainTwoByTwo();
  ParallelFor(y[0] * y[1], 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* from = call.in<float>(0) + i * in_size;
      float* to = call.out<float>(0) + i * out_size;
      int32_t* at = argmax == nullptr ? nullptr : argmax + i * out_size;
      if (fast) {
        plane.RunTwoByTwo(from, to, at);
      } else {
        plane.Run(from, to, at);
      }
    }
  });
}

void MaxPoolGrad(const HostCall& call) {
  const Shape& x = call.out_shape(0);
  const Shape& y = call.in_shape(0);
  const int64_t in_size = x[2] * x[3];
  const int64_t out_size = y[2] * y[3];
  ParallelFor(x[0] * x[1], 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* dy = call.in<float>(0) + i * out_size;
      const int32_t* argmax = call.in<int32_t>(1) + i * out_size;
      float* dx = call.out<float>(0) + i * in_size;
      std::memset(dx, 0, static_cast<size_t>(in_size) * sizeof(float));
      for (int64_t j = 0; j < out_size; ++j) {
        if (argmax[j] >= 0) dx[argmax[j]] += dy[j];
      }
    }
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
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu
