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

// The places [first, last) of a row of Y whose window reads X with its element `k` of the innermost dimension, and
// where in the row of X the place 0 would read.
struct Reads {
  Reads(const Window& window, const Planes& planes, int64_t k) : start(window.at(2, 0, k)) {
    const int64_t stride = window.stride[2], room = planes.x[2] - 1 - start;
    const int64_t skipped = std::max<int64_t>(-start, 0);
    first = std::min(stride == 1 ? skipped : (skipped + stride - 1) / stride, planes.y[2]);
    last = room < 0 ? first : std::clamp(stride == 1 ? room + 1 : room / stride + 1, first, planes.y[2]);
  }
  int64_t start;
  int64_t first;
  int64_t last;
};

// An average pooling, row by row of Y: all places of a row with one element of their windows, then with the next.
class Averages {
 public:
  Averages(const PoolAttributes& attributes, const Planes& planes)
      : window_(attributes), planes_(planes), padded_(attributes.count_include_pad), width_(planes.y[2]) {}

  // Of one plane.
  void Pool(const float* x, float* y) const {
    for (int64_t row = 0; row < planes_.y[0] * planes_.y[1]; ++row) {
      float* const to = y + row * width_;
      std::fill_n(to, width_, 0.0f);
      ForEachRowOfX(row, [&](int64_t from_row) {
        const float* const from = x + from_row * planes_.x[2];
        for (int64_t k = 0; k < window_.kernel[2]; ++k) AddReads(Reads(window_, planes_, k), from, to);
      });
      Divide(row, 0, width_, to, to);
    }
  }

  // dX gets its parts in the order of the places of Y.
  void Gradient(const float* dy, float* dx) const {
    constexpr int64_t kAtOnce = 256;
    for (int64_t row = 0; row < planes_.y[0] * planes_.y[1]; ++row) {
      for (int64_t first = 0; first < width_; first += kAtOnce) {
        const int64_t last = std::min(first + kAtOnce, width_);
        float shares[kAtOnce];
        Divide(row, first, last, dy + row * width_ + first, shares);
        ForEachRowOfX(row, [&](int64_t to_row) {
          float* const to = dx + to_row * planes_.x[2];
          for (int64_t k = window_.kernel[2]; k-- > 0;) AddShares(Reads(window_, planes_, k), first, last, shares, to);
        });
      }
    }
  }

 private:
  // Those that the windows of row `row` of Y read, in order.
  template <typename Body>
  void ForEachRowOfX(int64_t row, const Body& body) const {
    for (int64_t k0 = 0; k0 < window_.kernel[0]; ++k0) {
      const int64_t i0 = window_.at(0, row / planes_.y[1], k0);
      if (i0 < 0 || i0 >= planes_.x[0]) continue;
      for (int64_t k1 = 0; k1 < window_.kernel[1]; ++k1) {
        const int64_t i1 = window_.at(1, row % planes_.y[1], k1);
        if (i1 >= 0 && i1 < planes_.x[1]) body(i0 * planes_.x[1] + i1);
      }
    }
  }

  void AddReads(const Reads& reads, const float* from, float* to) const {
    const int64_t stride = window_.stride[2];
    if (stride == 1) {
#pragma GCC ivdep
      for (int64_t o = reads.first; o < reads.last; ++o) to[o] += from[reads.start + o];
    } else {
#pragma GCC ivdep
      for (int64_t o = reads.first; o < reads.last; ++o) to[o] += from[reads.start + o * stride];
    }
  }

  // `shares` are those of the places from `first` on.
  void AddShares(const Reads& reads, int64_t first, int64_t last, const float* shares, float* to) const {
    const int64_t stride = window_.stride[2];
    const int64_t begin = std::max(reads.first, first), end = std::min(reads.last, last);
    if (stride == 1) {
#pragma GCC ivdep
      for (int64_t o = begin; o < end; ++o) to[reads.start + o] += shares[o - first];
    } else {
#pragma GCC ivdep
      for (int64_t o = begin; o < end; ++o) to[reads.start + o * stride] += shares[o - first];
    }
  }

  // to[i] = from[i] / the elements of the window of place first + i of the row, or 0 where it has none.
  void Divide(int64_t row, int64_t first, int64_t last, const float* from, float* to) const {
    const int64_t o0 = row / planes_.y[1], o1 = row % planes_.y[1];
    // Between these the windows have all of their elements in this dimension.
    const int64_t low = std::clamp(Reads(window_, planes_, 0).first, first, last);
    const int64_t high = std::clamp(Reads(window_, planes_, window_.kernel[2] - 1).last, low, last);
    const auto divide = [&](int64_t begin, int64_t end, int64_t count) {
      const auto divisor = static_cast<float>(count);
      for (int64_t o = begin; o < end; ++o) to[o - first] = count == 0 ? 0.0f : from[o - first] / divisor;
    };
    const auto count = [&](int64_t o) { return window_.Count(planes_.x, {o0, o1, o}, padded_); };
    for (int64_t o = first; o < low; ++o) divide(o, o + 1, count(o));
    if (low < high) divide(low, high, count(low));
    for (int64_t o = high; o < last; ++o) divide(o, o + 1, count(o));
  }

  const Window window_;
  const Planes& planes_;
  const bool padded_;
  const int64_t width_;  // of a row of Y
};

void AveragePool(const HostCall& call) {
  const Planes planes(call.in_shape(0), call.out_shape(0));
  const Averages averages(call.attrs<PoolAttributes>(), planes);
  planes.ForEach([&](int64_t plane) {
    averages.Pool(call.in<float>(0) + plane * planes.x_volume, call.out<float>(0) + plane * planes.y_volume);
  });
}

void AveragePoolGrad(const HostCall& call) {
  const Planes planes(call.out_shape(0), call.in_shape(0));
  const Averages averages(call.attrs<PoolAttributes>(), planes);
  planes.ForEach([&](int64_t plane) {
    float* const dx = call.out<float>(0) + plane * planes.x_volume;
    std::memset(dx, 0, static_cast<size_t>(planes.x_volume) * sizeof(float));
    averages.Gradient(call.in<float>(0) + plane * planes.y_volume, dx);
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
