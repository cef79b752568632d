// The index arithmetic of Resize along one axis: the input elements and weights of an output coordinate.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_RESIZE_RESIZE_H_
#define LOCKSTEP_WORKER_KERNELS_RESIZE_RESIZE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/graph/ops/resize.h"
#include "common/math/host_device.h"
#include "common/tensor/shape.h"

namespace lockstep::device {

// The two input elements of an output coordinate and their weights; weight[1] is 0 if one suffices.
struct ResizeTaps {
  int64_t index[2] = {0, 0};
  double weight[2] = {1, 0};
};

struct ResizeAxis {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kRoundPreferFloor;
  int64_t in = 1;
  int64_t out = 1;
  double scale = 1;
  double width = 1;      // the output's size before rounding down, which ONNX uses in align_corners
  bool straight = true;  // the axis is not resized: every coordinate maps to itself

  // The taps of output coordinate `at`. Indices are monotonic in `at`, and index[1] <= index[0] + 1.
  LS_HD ResizeTaps At(int64_t at) const {
    ResizeTaps taps;
    taps.index[0] = taps.index[1] = at;
    if (straight) return taps;
    const double x = Coordinate(at);
    if (mode == ResizeMode::kNearest) {
      taps.index[0] = taps.index[1] = Inside(Nearest(x));
      return taps;
    }
    const int64_t low = Floor(x);
    taps.weight[1] = x - static_cast<double>(low);
    taps.weight[0] = 1 - taps.weight[1];
    taps.index[0] = Inside(low);
    taps.index[1] = Inside(low + 1);
    return taps;
  }

 private:
  LS_HD static int64_t Floor(double x) {
    const auto whole = static_cast<int64_t>(x);
    return static_cast<double>(whole) > x ? whole - 1 : whole;
  }
  LS_HD static int64_t Ceil(double x) { return -Floor(-x); }
  LS_HD int64_t Inside(int64_t i) const { return i < 0 ? 0 : i < in ? i : in - 1; }

  LS_HD double Coordinate(int64_t at) const {
    const auto x = static_cast<double>(at);
    switch (coordinates) {
      case ResizeCoordinates::kHalfPixel:
        return (x + 0.5) / scale - 0.5;
      case ResizeCoordinates::kPytorchHalfPixel:
        return width > 1 ? (x + 0.5) / scale - 0.5 : 0.0;
      case ResizeCoordinates::kAlignCorners:
        return width > 1 ? x * static_cast<double>(in - 1) / (width - 1) : 0.0;
      case ResizeCoordinates::kAsymmetric:
        return x / scale;
      case ResizeCoordinates::kTfHalfPixelForNn:
        return (x + 0.5) / scale;
    }
    return x;
  }

  LS_HD int64_t Nearest(double x) const {
    switch (rounding) {
      case ResizeRounding::kRoundPreferFloor:
        return Ceil(x - 0.5);
      case ResizeRounding::kRoundPreferCeil:
        return Floor(x + 0.5);
      case ResizeRounding::kFloor:
        return Floor(x);
      case ResizeRounding::kCeil:
        return Ceil(x);
    }
    return 0;
  }
};

// The resizing of one axis, from the op's attributes and shapes.
inline ResizeAxis ResizeAxisOf(const ResizeAttributes& resize, const Shape& in, const Shape& out, size_t axis) {
  size_t entry = axis;
  if (!resize.axes.empty()) {
    const auto rank = static_cast<int64_t>(in.size());
    entry = static_cast<size_t>(
        std::find_if(resize.axes.begin(), resize.axes.end(),
                     [&](int64_t named) { return (named + rank) % rank == static_cast<int64_t>(axis); }) -
        resize.axes.begin());
  }
  const bool named = entry < std::max(resize.scales.size(), resize.sizes.size());
  const bool scaled = named && !resize.scales.empty();
  const double scale = scaled ? resize.scales[entry] : static_cast<double>(out[axis]) / static_cast<double>(in[axis]);
  return {.mode = resize.mode,
          .coordinates = resize.coordinates,
          .rounding = resize.rounding,
          .in = in[axis],
          .out = out[axis],
          .scale = scale,
          .width = scaled ? scale * static_cast<double>(in[axis]) : static_cast<double>(out[axis]),
          .straight = !named || (scale == 1 && in[axis] == out[axis])};
}

inline std::vector<ResizeAxis> ResizeAxes(const ResizeAttributes& resize, const Shape& in, const Shape& out) {
  std::vector<ResizeAxis> axes(in.size());
  for (size_t axis = 0; axis < in.size(); ++axis) axes[axis] = ResizeAxisOf(resize, in, out, axis);
  return axes;
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_RESIZE_RESIZE_H_
