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

// Calls body(row) for those rows of X that the windows of row `row` of Y read, in order.
template <typename Body>
void ForEachRowOfX(const Window& window, const Planes& planes, int64_t row, const Body& body) {
  for (int64_t k0 = 0; k0 < window.kernel[0]; ++k0) {
    const int64_t i0 = window.at(0, row / planes.y[1], k0);
    if (i0 < 0 || i0 >= planes.x[0]) continue;
    for (int64_t k1 = 0; k1 < window.kernel[1]; ++k1) {
      const int64_t i1 = window.at(1, row % planes.y[1], k1);
      if (i1 >= 0 && i1 < planes.x[1]) body(i0 * planes.x[1] + i1);
    }
  }
}

// One plane of a max pooling, with the index of each maximum if kIndices, else `argmax` is null.
struct MaxCall {
  const Window& window;
  const Planes& planes;
  const float* x;
  float* y;
  int32_t* argmax;
};

// Two by two, side by side, wholly inside: LeNet's and VGG's.
bool IsPlainTwoByTwo(const Window& window, const Planes& planes) {
  const Spatial two = {1, 2, 2};
  return window.kernel == two && window.stride == two && window.before == Spatial{0, 0, 0} &&
         window.dilation == Spatial{1, 1, 1} && planes.x[0] == 1 && planes.y[1] * 2 <= planes.x[1] &&
         planes.y[2] * 2 <= planes.x[2];
}

template <bool kIndices>
[[gnu::always_inline]] inline void MaxRowTwoByTwo(const float* __restrict upper, const float* __restrict lower,
                                                  int64_t width, int32_t row, int32_t below, float* __restrict to,
                                                  int32_t* __restrict at) {
  for (int64_t o = 0; o < width; ++o) {
    const auto first = static_cast<int32_t>(row + 2 * o);
    float best = upper[2 * o];
    int32_t index = first;
    const auto consider = [&](float value, int32_t where) {
      const bool wins = Wins(value, best);
      best = wins ? value : best;
      index = wins ? where : index;
    };
    consider(upper[2 * o + 1], first + 1);
    consider(lower[2 * o], first + below);
    consider(lower[2 * o + 1], first + below + 1);
    to[o] = best;
    if (kIndices) at[o] = index;
  }
}

// All places of a row of Y with one element of their windows. `from` is the row of X, whose first element has the index
// `row`; `stride` is a constant where that makes vector code.
template <bool kIndices>
[[gnu::always_inline]] inline void MaxReads(const Reads& reads, int64_t stride, const float* __restrict from,
                                            int64_t row, float* __restrict to, int32_t* __restrict at) {
  for (int64_t o = reads.first; o < reads.last; ++o) {
    const float value = from[reads.start + o * stride];
    const bool wins = Wins(value, to[o]) || (kIndices && at[o] < 0);
    to[o] = wins ? value : to[o];
    if (kIndices) at[o] = wins ? static_cast<int32_t>(row + reads.start + o * stride) : at[o];
  }
}

template <bool kIndices>
[[gnu::always_inline]] inline void MaxPlane(const MaxCall& call) {
  const Planes& planes = call.planes;
  const int64_t width = planes.y[2], columns = planes.x[2];
  if (IsPlainTwoByTwo(call.window, planes)) {
    for (int64_t o = 0; o < planes.y[1]; ++o) {
      const int64_t row = 2 * o * columns;
      MaxRowTwoByTwo<kIndices>(call.x + row, call.x + row + columns, width, static_cast<int32_t>(row),
                               static_cast<int32_t>(columns), call.y + o * width,
                               call.argmax + (kIndices ? o * width : 0));
    }
    return;
  }
  for (int64_t row = 0; row < planes.y[0] * planes.y[1]; ++row) {
    float* const to = call.y + row * width;
    int32_t* const at = call.argmax + (kIndices ? row * width : 0);
    // What a window of padding alone has, which dilation can make.
    std::fill_n(to, width, -std::numeric_limits<float>::infinity());
    if (kIndices) std::fill_n(at, width, -1);
    ForEachRowOfX(call.window, planes, row, [&](int64_t from_row) {
      const int64_t first = from_row * columns;
      const float* const from = call.x + first;
      for (int64_t k = 0; k < call.window.kernel[2]; ++k) {
        const Reads reads(call.window, planes, k);
        const int64_t stride = call.window.stride[2];
        if (stride == 1) {
          MaxReads<kIndices>(reads, 1, from, first, to, at);
        } else if (stride == 2) {
          MaxReads<kIndices>(reads, 2, from, first, to, at);
        } else {
          MaxReads<kIndices>(reads, stride, from, first, to, at);
        }
      }
    });
  }
}

// Rows that are shorter than a vector of 64 bytes would be computed one by one.
template <bool kIndices>
[[gnu::noinline, gnu::target("prefer-vector-width=256")]] void MaxPlaneOfShortRows(const MaxCall& call) {
  MaxPlane<kIndices>(call);
}

template <bool kIndices>
[[gnu::noinline]] void MaxPlaneOfLongRows(const MaxCall& call) {
  MaxPlane<kIndices>(call);
}

void MaxPool(const HostCall& call) {
  constexpr int64_t kLong = 16;
  const Window window(call.attrs<PoolAttributes>());
  const Planes planes(call.in_shape(0), call.out_shape(0));
  int32_t* const argmax = call.out<int32_t>(1);
  const bool is_long = planes.y[2] >= kLong;
  planes.ForEach([&](int64_t plane) {
    const MaxCall one{window, planes, call.in<float>(0) + plane * planes.x_volume,
                      call.out<float>(0) + plane * planes.y_volume,
                      argmax == nullptr ? nullptr : argmax + plane * planes.y_volume};
    if (argmax == nullptr) {
      is_long ? MaxPlaneOfLongRows<false>(one) : MaxPlaneOfShortRows<false>(one);
    } else {
      is_long ? MaxPlaneOfLongRows<true>(one) : MaxPlaneOfShortRows<true>(one);
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
      ForEachRowOfX(window_, planes_, row, [&](int64_t from_row) {
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
        ForEachRowOfX(window_, planes_, row, [&](int64_t to_row) {
          float* const to = dx + to_row * planes_.x[2];
          for (int64_t k = window_.kernel[2]; k-- > 0;) AddShares(Reads(window_, planes_, k), first, last, shares, to);
        });
      }
    }
  }

 private:
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
