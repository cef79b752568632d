#include <algorithm>
#include <cstdint>
#include <vector>

#include "worker/device/reference/families.h"

namespace lockstep::device::reference {
namespace {

// The two input elements that an output coordinate reads along one axis; weight[1] is 0 where one is enough.
struct Taps {
  int64_t index[2] = {0, 0};
  double weight[2] = {1, 0};
};

int64_t Floor(double x) {
  const auto whole = static_cast<int64_t>(x);
  return static_cast<double>(whole) > x ? whole - 1 : whole;
}
int64_t Ceil(double x) { return -Floor(-x); }

// `width` is the output's size before it was rounded down, which is what ONNX aligns corners with.
double Coordinate(const ResizeAttributes& resize, int64_t at, double scale, int64_t in, double width) {
  const auto x = static_cast<double>(at);
  switch (resize.coordinates) {
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

int64_t Nearest(ResizeRounding rounding, double x) {
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

Taps TapsAt(const ResizeAttributes& resize, double x, int64_t in) {
  const auto inside = [in](int64_t i) { return std::clamp<int64_t>(i, 0, in - 1); };
  Taps taps;
  if (resize.mode == ResizeMode::kNearest) {
    taps.index[0] = inside(Nearest(resize.rounding, x));
    return taps;
  }
  const int64_t low = Floor(x);
  taps.weight[1] = x - static_cast<double>(low);
  taps.weight[0] = 1 - taps.weight[1];
  taps.index[0] = inside(low);
  taps.index[1] = inside(low + 1);
  return taps;
}

// The taps of every output coordinate of every axis. An axis that keeps its size and is not named reads straight
// through.
std::vector<std::vector<Taps>> AllTaps(const ResizeAttributes& resize, const Shape& in, const Shape& out) {
  std::vector<std::vector<Taps>> all(in.size());
  for (size_t axis = 0; axis < in.size(); ++axis) {
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
    const double width = scaled ? scale * static_cast<double>(in[axis]) : static_cast<double>(out[axis]);
    for (int64_t at = 0; at < out[axis]; ++at) {
      Taps taps{{at, at}, {1, 0}};
      if (named && (scale != 1 || in[axis] != out[axis])) {
        taps = TapsAt(resize, Coordinate(resize, at, scale, in[axis], width), in[axis]);
      }
      all[axis].push_back(taps);
    }
  }
  return all;
}

// Calls visit(out_index, in_index, weight) for every input element that an output element reads, in index order.
template <typename Visit>
void ForEachTap(const ResizeAttributes& resize, const Shape& in, const Shape& out, const Visit& visit) {
  const std::vector<std::vector<Taps>> taps = AllTaps(resize, in, out);
  const int64_t count = NumElements(out);
  std::vector<const Taps*> here(in.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (size_t axis = out.size(); axis-- > 0; rest /= out[axis]) {
      here[axis] = &taps[axis][static_cast<size_t>(rest % out[axis])];
    }
    for (size_t choice = 0; choice < size_t{1} << in.size(); ++choice) {
      double weight = 1;
      int64_t from = 0;
      for (size_t axis = 0; axis < in.size(); ++axis) {
        const size_t side = choice >> axis & 1;
        weight *= here[axis]->weight[side];
        from = from * in[axis] + here[axis]->index[side];
      }
      if (weight != 0) visit(i, from, weight);
    }
  }
}

template <typename T>
void Scatter(const HostCall& call, bool backward) {
  const auto& resize = call.attrs<ResizeAttributes>();
  const Shape& in = backward ? call.out_shape(0) : call.in_shape(0);
  const Shape& out = backward ? call.in_shape(0) : call.out_shape(0);
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) sums[i] = 0;
  ForEachTap(resize, in, out, [&](int64_t to, int64_t from, double weight) {
    sums[backward ? from : to] += weight * call.in<T>(0)[backward ? to : from];
  });
  for (int64_t i = 0; i < count; ++i) call.out<T>(0)[i] = static_cast<T>(sums[i]);
}

}  // namespace

template <typename T>
HostFunction ResizeFunction(OpType type) {
  switch (type) {
    case OpType::kResize:
      return [](const HostCall& call) { Scatter<T>(call, false); };
    case OpType::kResizeGrad:
      return [](const HostCall& call) { Scatter<T>(call, true); };
    default:
      return nullptr;
  }
}

template HostFunction ResizeFunction<float>(OpType);
template HostFunction ResizeFunction<double>(OpType);

}  // namespace lockstep::device::reference
