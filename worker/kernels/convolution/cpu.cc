// The gradient of a convolution's weights, for shapes that oneDNN runs slowly: a filter per channel, and one channel
// of X.
//
// The lanes of a vector are neighbouring channels of dY, whose planes are brought into that order first, image by
// image. A sum runs over the places of an image, then over the images of a part, then over the parts, of which there
// are as many whatever the number of threads and the width of a vector; so no bit depends on either.
#include <algorithm>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/cpu/vector.h"
#include "worker/kernels/window.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr char kName[] = "own:conv_grad_weight";  // outlives every OwnFunction
constexpr int64_t kMostParts = 8;
constexpr int kMostTaps = 8;  // neighbours in a row of a filter that are summed at a time
constexpr int kTwoRows = 5;   // up to so many, those of two rows

// Sizes, and offsets into the workspace in floats.
struct Gradient {
  [[gnu::always_inline]] Gradient(const ConvAttributes& attributes, const Shape& dy_shape, const Shape& x_shape)
      : window(attributes),
        depthwise(attributes.group > 1),
        images(dy_shape[0]),
        channels(dy_shape[1]),
        y(SpatialOf(dy_shape)),
        x(SpatialOf(x_shape)),
        rows((y[1] - 1) * window.stride[1] + window.kernel[1]),
        columns((y[2] - 1) * window.stride[2] + window.kernel[2]),
        taps(window.kernel[1] * window.kernel[2]),
        blocks((channels + kVector - 1) / kVector),
        parts(std::min(images, kMostParts)),
        of_block((taps + 1) * kVector),
        dy_lanes(parts * blocks * of_block),
        x_lanes(y[1] * y[2] * kVector),
        scratch(x_lanes + rows * columns * kVector) {}

  const Window window;
  const bool depthwise;
  const int64_t images, channels;
  const Spatial y, x;
  const int64_t rows, columns;  // of a plane of X with the padding that is read
  const int64_t taps;           // elements of a filter
  const int64_t blocks, parts;  // of channels; of images
  const int64_t of_block;       // floats of one part and block: its taps, then the sum of dY
  const int64_t dy_lanes;       // where the first thread's scratch begins
  const int64_t x_lanes;        // behind dY in a thread's scratch
  const int64_t scratch;        // floats of one thread
};

// Adds what `kRows` rows of `kTaps` elements of a filter get from one image. `x`: where the first element of the filter
// reads for the first place of Y.
template <bool kDepthwise, int kTaps, int kRows>
void AddTaps(const Gradient& g, const float* dy, const float* x, float* sums) {
  constexpr int64_t kStep = kDepthwise ? kVector : 1;
  const int64_t down = g.columns * kStep;
  const int64_t row_step = g.window.stride[1] * down;
  const int64_t column_step = g.window.stride[2] * kStep;
  Vector added[kRows][kTaps] = {};
  for (int64_t row = 0; row < g.y[1]; ++row, x += row_step) {
    const float* from = x;
    for (int64_t column = 0; column < g.y[2]; ++column, from += column_step, dy += kVector) {
      const Vector d = LoadVector(dy);
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
        for (int t = 0; t < kTaps; ++t) {
          const float* at = from + r * down + t * kStep;
          if constexpr (kDepthwise) {
            added[r][t] = MultiplyAdd(LoadVector(at), d, added[r][t]);
          } else {
            added[r][t] = MultiplyAdd(*at, d, added[r][t]);
          }
        }
      }
    }
  }
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
      float* sum = sums + (r * g.window.kernel[2] + t) * kVector;
      StoreVector(sum, LoadVector(sum) + added[r][t]);
    }
  }
}

template <bool kDepthwise, int kRows, int kTaps = 1>
void AddRows(const Gradient& g, int64_t taps, const float* dy, const float* x, float* sums) {
  if constexpr (kTaps <= (kRows == 2 ? kTwoRows : kMostTaps)) {
    if (taps == kTaps) {
      AddTaps<kDepthwise, kTaps, kRows>(g, dy, x, sums);
    } else {
      AddRows<kDepthwise, kRows, kTaps + 1>(g, taps, dy, x, sums);
    }
  }
}

// Adds what one image gives to every filter of a block.
template <bool kDepthwise>
void AddImage(const Gradient& g, const float* dy, const float* x, float* sums) {
  constexpr int64_t kStep = kDepthwise ? kVector : 1;
  const int64_t height = g.window.kernel[1], width = g.window.kernel[2];
  for (int64_t k0 = 0; k0 < width; k0 += kMostTaps) {
    const int64_t taps = std::min<int64_t>(width - k0, kMostTaps);
    for (int64_t row = 0; row < height;) {
      const float* from = x + (row * g.columns + k0) * kStep;
      float* to = sums + (row * width + k0) * kVector;
      if (taps <= kTwoRows && row + 2 <= height) {
        AddRows<kDepthwise, 2>(g, taps, dy, from, to);
        row += 2;
      } else {
        AddRows<kDepthwise, 1>(g, taps, dy, from, to);
        row += 1;
      }
    }
  }
  Vector added[4] = {};
  const int64_t places = g.y[1] * g.y[2];
  int64_t i = 0;
  for (; i + 4 <= places; i += 4) {
#pragma GCC unroll 4
    for (int64_t j = 0; j < 4; ++j) added[j] += LoadVector(dy + (i + j) * kVector);
  }
  for (; i < places; ++i) added[0] += LoadVector(dy + i * kVector);
  float* sum = sums + g.taps * kVector;
  StoreVector(sum, LoadVector(sum) + ((added[0] + added[1]) + (added[2] + added[3])));
}

// Brings the first `height` rows and `width` columns of up to kVector planes into lanes. `to` has `columns` places in a
// row.
void ToLanes(const float* planes, const Spatial& plane, int64_t lanes, int64_t height, int64_t width, int64_t columns,
             float* to) {
  for (int64_t row = 0; row < height; ++row) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const float* from = planes + (lane * plane[1] + row) * plane[2];
      float* into = to + row * columns * kVector + lane;
      for (int64_t i = 0; i < width; ++i) into[i * kVector] = from[i];
    }
  }
}

// Writes what the filters read of an image's planes of X behind the padding before them, which stays as it is.
void PlaceX(const Gradient& g, const float* planes, int64_t lanes, float* to) {
  const int64_t height = std::min(g.x[1], g.rows - g.window.before[1]);
  const int64_t width = std::min(g.x[2], g.columns - g.window.before[2]);
  const int64_t first = g.window.before[1] * g.columns + g.window.before[2];
  if (width <= 0) return;
  if (g.depthwise) return ToLanes(planes, g.x, lanes, height, width, g.columns, to + first * kVector);
  for (int64_t row = 0; row < height; ++row) std::copy_n(planes + row * g.x[2], width, to + first + row * g.columns);
}

// The sums of one part of the images, for one block of channels.
void SumPart(const HostCall& call, const Gradient& g, int64_t part, int64_t block, float* scratch, float* sums) {
  const int64_t first = block * kVector, lanes = std::min<int64_t>(kVector, g.channels - first);
  const int64_t y_volume = g.y[1] * g.y[2], x_volume = g.x[1] * g.x[2];
  float* x_lanes = scratch + g.x_lanes;
  std::fill_n(scratch, g.scratch, 0.0f);
  std::fill_n(sums, g.of_block, 0.0f);
  for (int64_t n = g.images * part / g.parts; n < g.images * (part + 1) / g.parts; ++n) {
    ToLanes(call.in<float>(0) + (n * g.channels + first) * y_volume, g.y, lanes, g.y[1], g.y[2], g.y[2], scratch);
    const int64_t x_plane = g.depthwise ? n * g.channels + first : n;
    PlaceX(g, call.in<float>(1) + x_plane * x_volume, lanes, x_lanes);
    if (g.depthwise) {
      AddImage<true>(g, scratch, x_lanes, sums);
    } else {
      AddImage<false>(g, scratch, x_lanes, sums);
    }
  }
}

void ConvGradWeight(const HostCall& call) {
  const Gradient g(call.attrs<ConvAttributes>(), call.in_shape(0), call.in_shape(1));
  float* const sums = reinterpret_cast<float*>(call.workspace);
  ParallelFor(g.parts * g.blocks, 1, [&](int64_t begin, int64_t end) {
    float* scratch = sums + g.dy_lanes + omp_get_thread_num() * g.scratch;
    for (int64_t i = begin; i < end; ++i) SumPart(call, g, i / g.blocks, i % g.blocks, scratch, sums + i * g.of_block);
  });
  float* dw = call.out<float>(0);
  float* db = call.out<float>(1);
  for (int64_t o = 0; o < g.channels; ++o) {
    for (int64_t tap = 0; tap < g.taps + (db != nullptr ? 1 : 0); ++tap) {
      float sum = 0;
      for (int64_t part = 0; part < g.parts; ++part) {
        sum += sums[(part * g.blocks + o / kVector) * g.of_block + tap * kVector + o % kVector];
      }
      (tap < g.taps ? dw[o * g.taps + tap] : db[o]) = sum;
    }
  }
}

}  // namespace

OwnFunction OwnConvolution(const KernelRequest& request) {
  if (request.node->op != OpType::kConvGradWeight) return {};
  const auto& attributes = AttributesOf<ConvAttributes>(request);
  const Shape& dy = request.inputs[0].shape;
  const Shape& x = request.inputs[1].shape;
  const bool depthwise = attributes.group > 1 && attributes.group == x[1] && x[1] == dy[1];
  const bool one = attributes.group == 1 && x[1] == 1;
  bool plain = dy.size() <= 4;
  for (const int64_t dilation : attributes.dilations) plain = plain && dilation == 1;
  if (!plain || !(depthwise || one)) {
    return {.refusal = "serves a filter per channel, or one channel, of up to two dimensions without dilation"};
  }
  const Gradient g(attributes, dy, x);
  OwnFunction own{&ConvGradWeight, kName};
  own.workspace_bytes = static_cast<size_t>(g.dy_lanes + omp_get_max_threads() * g.scratch) * sizeof(float);
  return own;
}

}  // namespace lockstep::device::cpu::LS_CODE
