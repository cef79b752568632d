// Images and weights as factors and results of tile_product.h (implicit GEMM): convolutions and their gradients become
// matrix products whose factors are never stored as matrices. Images are [samples, channels, plane]; there is one
// product (`batch`) per group of channels.
//
// Each factor states its two indices: `k`, over which the product sums, and `side`, its row or column.
//
// Threading: CUDA's execution model.
#ifndef LOCKSTEP_WORKER_KERNELS_CONVOLUTION_CUDA_FACTORS_H_
#define LOCKSTEP_WORKER_KERNELS_CONVOLUTION_CUDA_FACTORS_H_

#include <cstdint>

#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/matrix_factor.h"
#include "worker/kernels/cuda/window_numbers.h"

namespace lockstep::device::cuda {

// The sizes of a convolution. The window slides over x.
struct Convolution {
  WindowNumbers window;
  int samples;
  int x_channels;  // over all groups
  int y_channels;  // over all groups
  int x_per_group;
  int y_per_group;
};

// im2col of x. k: channel of x and element of the window; side: sample and position of y. The element of x that the
// window reads there.
struct WindowsOfX {
  static constexpr bool kAlongK = false;
  struct Place {
    Point begin[4];
    int offset[4];
  };

  __device__ WindowsOfX Of(int batch) const {
    WindowsOfX factor = *this;
    factor.x += batch * c.x_per_group * c.window.x.volume;
    return factor;
  }
  __device__ Place At(int j) const {
    const WindowNumbers& w = c.window;
    Place place;
    LS_UNROLL
    for (int q = 0; q < 4; ++q) {
      auto sample = static_cast<uint32_t>(j + q);
      place.begin[q] = w.Begin(w.y.Split(&sample));
      const Point& b = place.begin[q];
      place.offset[q] = static_cast<int>(sample) * c.x_channels * w.x.volume + w.x.Offset(b.at[0], b.at[1], b.at[2]);
      // Makes every element of the window lie outside.
      if (static_cast<int>(sample) >= c.samples) place.begin[q].at[0] = w.x.extent[0];
    }
    return place;
  }
  __device__ void Load(const Place& place, int k, int, float (&to)[4]) const {
    const WindowNumbers& w = c.window;
    auto channel = static_cast<uint32_t>(k);
    const Point e = w.kernel.Split(&channel);
    const int e0 = e.at[0] * w.dilation[0], e1 = e.at[1] * w.dilation[1], e2 = e.at[2] * w.dilation[2];
    const int offset = static_cast<int>(channel) * w.x.volume + w.x.Offset(e0, e1, e2);
    LS_UNROLL
    for (int q = 0; q < 4; ++q) {
      const Point& b = place.begin[q];
      to[q] = w.x.Holds(b.at[0] + e0, b.at[1] + e1, b.at[2] + e2) ? x[place.offset[q] + offset] : 0.0f;
    }
  }

  Convolution c;
  const float* x;
};

// The transpose of im2col, for the gradient of x. k: channel of y and element of the window; side: sample and position
// of x. The element of y whose window reads x there.
struct ReadersOfX {
  static constexpr bool kAlongK = false;
  struct Place {
    Point ahead[4];  // distance from the begin of the first window
    int offset[4];
  };

  __device__ ReadersOfX Of(int batch) const {
    ReadersOfX factor = *this;
    factor.y += batch * c.y_per_group * c.window.y.volume;
    return factor;
  }
  __device__ Place At(int j) const {
    const WindowNumbers& w = c.window;
    Place place;
    LS_UNROLL
    for (int q = 0; q < 4; ++q) {
      auto sample = static_cast<uint32_t>(j + q);
      place.ahead[q] = w.x.Split(&sample);
      LS_UNROLL
      for (int d = 0; d < 3; ++d) place.ahead[q].at[d] += w.before[d];
      place.offset[q] = static_cast<int>(sample) * c.y_channels * w.y.volume;
      // Before the first window, so that no window reads it.
      if (static_cast<int>(sample) >= c.samples) place.ahead[q].at[0] = -1;
    }
    return place;
  }
  __device__ void Load(const Place& place, int k, int, float (&to)[4]) const {
    const WindowNumbers& w = c.window;
    auto channel = static_cast<uint32_t>(k);
    const Point e = w.kernel.Split(&channel);
    const int offset = static_cast<int>(channel) * w.y.volume;
    LS_UNROLL
    for (int q = 0; q < 4; ++q) {
      int o[3];
      bool reads = true;
      LS_UNROLL
      for (int d = 0; d < 3; ++d) {
        const int ahead = place.ahead[q].at[d] - e.at[d] * w.dilation[d];
        auto rest = static_cast<uint32_t>(ahead < 0 ? 0 : ahead);
        reads = w.by_stride[d].Split(&rest) == 0 && ahead >= 0 && reads;
        o[d] = static_cast<int>(rest);
      }
      to[q] = reads && w.y.Holds(o[0], o[1], o[2]) ? y[place.offset[q] + offset + w.y.Offset(o[0], o[1], o[2])] : 0.0f;
    }
  }

  Convolution c;
  const float* y;
};

// The weights [y channels, x channels of a group, window], for the gradient of x. side: channel of x; k: channel of y
// and element of the window.
struct WeightsByX {
  static constexpr bool kAlongK = true;
  using Place = int;

  __device__ WeightsByX Of(int batch) const {
    WeightsByX factor = *this;
    factor.w += batch * c.y_per_group * c.x_per_group * c.window.kernel.volume;
    return factor;
  }
  __device__ Place At(int i) const { return i; }
  __device__ void Load(const Place& i, int k, int k_end, float (&to)[4]) const {
    const int volume = c.window.kernel.volume;
    LS_UNROLL
    for (int q = 0; q < 4; ++q) {
      auto channel = static_cast<uint32_t>(k + q);
      const auto element = static_cast<int>(c.window.kernel.by_volume.Split(&channel));
      const bool inside = i < c.x_per_group && k + q < k_end;
      to[q] = inside ? w[(static_cast<int>(channel) * c.x_per_group + i) * volume + element] : 0.0f;
    }
  }

  Convolution c;
  const float* w;
};

// y, for the gradient of the weights. side: channel of y; k: sample and position.
struct ChannelsOfY {
  static constexpr bool kAlongK = true;
  using Place = int;

  __device__ ChannelsOfY Of(int batch) const {
    ChannelsOfY factor = *this;
    factor.y += batch * c.y_per_group * c.window.y.volume;
    return factor;
  }
  __device__ Place At(int i) const { return i; }
  __device__ void Load(const Place& i, int k, int k_end, float (&to)[4]) const {
    const Plane& plane = c.window.y;
    const int count = i < c.y_per_group ? k_end - k : 0;
    if (packed) {
      auto sample = static_cast<uint32_t>(k);
      const auto at = static_cast<int>(plane.by_volume.Split(&sample));
      LoadFour(y + (static_cast<int>(sample) * c.y_channels + i) * plane.volume + at, count, true, to);
      return;
    }
    LS_UNROLL
    for (int q = 0; q < 4; ++q) {
      auto sample = static_cast<uint32_t>(k + q);
      const auto at = static_cast<int>(plane.by_volume.Split(&sample));
      to[q] = q < count ? y[(static_cast<int>(sample) * c.y_channels + i) * plane.volume + at] : 0.0f;
    }
  }

  Convolution c;
  const float* y;
  bool packed;  // the rows of y are aligned for LoadFour
};

// im2col of x, transposed, for the gradient of the weights. k: sample and position of y; side: channel of x and element
// of the window. The element of x that the window reads there.
struct ElementsOfX {
  static constexpr bool kAlongK = true;
  struct Place {
    Point element;  // times the dilation
    int offset;
  };

  __device__ ElementsOfX Of(int batch) const {
    ElementsOfX factor = *this;
    factor.x += batch * c.x_per_group * c.window.x.volume;
    return factor;
  }
  __device__ Place At(int j) const {
    const WindowNumbers& w = c.window;
    auto channel = static_cast<uint32_t>(j);
    Place place;
    place.element = w.kernel.Split(&channel);
    LS_UNROLL
    for (int d = 0; d < 3; ++d) place.element.at[d] *= w.dilation[d];
    place.offset = static_cast<int>(channel) * w.x.volume;
    // Outside of x for every window.
    if (static_cast<int>(channel) >= c.x_per_group) place.element.at[0] = w.x.extent[0] + w.before[0];
    return place;
  }
  __device__ void Load(const Place& place, int k, int k_end, float (&to)[4]) const {
    const WindowNumbers& w = c.window;
    auto sample = static_cast<uint32_t>(k);
    Point o = w.y.Split(&sample);
    int offset = static_cast<int>(sample) * c.x_channels * w.x.volume + place.offset;
    LS_UNROLL
    for (int q = 0; q < 4; ++q) {
      const Point b = w.Begin(o);
      const int i0 = b.at[0] + place.element.at[0], i1 = b.at[1] + place.element.at[1];
      const int i2 = b.at[2] + place.element.at[2];
      to[q] = k + q < k_end && w.x.Holds(i0, i1, i2) ? x[offset + w.x.Offset(i0, i1, i2)] : 0.0f;
      // Advance to the next position, with carry to row, layer and sample.
      if (++o.at[2] < w.y.extent[2]) continue;
      o.at[2] = 0;
      if (++o.at[1] < w.y.extent[1]) continue;
      o.at[1] = 0;
      if (++o.at[0] < w.y.extent[0]) continue;
      o.at[0] = 0;
      offset += c.x_channels * w.x.volume;
    }
  }

  Convolution c;
  const float* x;
};

// An image as the result: i is a channel of the group, j sample and position. Adds the bias, if any, and applies ReLU.
struct ImageResult {
  __device__ void Write(int64_t group, int i, int j, const float (&sums)[4]) const {
    if (i >= per_group) return;
    const int channel = static_cast<int>(group) * per_group + i;
    const float b = bias == nullptr ? 0.0f : bias[channel];
    float values[4];
    LS_UNROLL
    for (int q = 0; q < 4; ++q) {
      const float value = bias == nullptr ? sums[q] : sums[q] + b;
      values[q] = relu && value < 0.0f ? 0.0f : value;
    }
    LS_UNROLL
    for (int q = 0; q < 4; ++q) {
      if (j + q >= columns) return;
      auto sample = static_cast<uint32_t>(j + q);
      const auto at = static_cast<int>(by_volume.Split(&sample));
      float* to = image + (int64_t{sample} * channels + channel) * volume + at;
      if (packed) {
        StoreFour(to, 4, true, values);
        return;
      }
      *to = values[q];
    }
  }

  float* image;
  const float* bias;
  int channels;
  int per_group;
  int volume;
  FastDivide by_volume;
  int columns;  // samples * volume
  bool relu;
  bool packed;  // planes are aligned for StoreFour
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CONVOLUTION_CUDA_FACTORS_H_
