// Resize and its gradient. The taps of every axis that changes are tables in the workspace; then a thread gathers each
// result. Backward, an input element visits the outputs that read it: along each axis they follow each other.
#include <cstdint>
#include <optional>
#include <vector>

#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/device/cuda/runtime/launch.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/fast_divide.h"
#include "worker/kernels/resize/resize.h"

namespace lockstep::device::cuda {
namespace {

// After neighbouring axes that keep their sizes have become one.
constexpr int kMostAxes = 5;

struct Tap {
  int index[2];
  float weight[2];
};

// The outputs that read one input element: from first to last.
struct Readers {
  int first;
  int last;
};

struct Axis {
  FastDivide in;
  FastDivide out;
  const Tap* taps;  // null: straight
  const Readers* readers;
};

struct Axes {
  Axis axis[kMostAxes];  // the innermost first
  int rank;
};

__global__ void ResizeKernel(int64_t count, Axes axes, const float* x, float* y) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    Tap taps[kMostAxes];
    auto rest = static_cast<uint32_t>(i);
    int distance = 1;
    LS_UNROLL
    for (int d = 0; d < kMostAxes; ++d) {
      taps[d] = {{0, 0}, {1, 0}};
      if (d >= axes.rank) continue;
      const Axis& axis = axes.axis[d];
      const auto at = static_cast<int>(axis.out.Split(&rest));
      taps[d] = axis.taps == nullptr ? Tap{{at, at}, {1, 0}} : axis.taps[at];
      taps[d].index[0] *= distance;
      taps[d].index[1] *= distance;
      distance *= static_cast<int>(axis.in.divisor());
    }
    float sum = 0;
    for (int choice = 0; choice < 1 << axes.rank; ++choice) {
      float weight = 1;
      int from = 0;
      LS_UNROLL
      for (int d = 0; d < kMostAxes; ++d) {
        const bool second = (choice >> d & 1) != 0;
        weight *= second ? taps[d].weight[1] : taps[d].weight[0];
        from += second ? taps[d].index[1] : taps[d].index[0];
      }
      if (weight != 0) sum += weight * x[from];
    }
    y[i] = sum;
  }
}

// The sum over the readers of an input element along axis d and those outside of it, the innermost being 0.
template <int d>
__device__ float SumReaders(const Axes& axes, const int (&point)[kMostAxes], const float* dy, float weight,
                            int64_t offset) {
  if constexpr (d < 0) {
    return weight * dy[offset];
  } else {
    if (d >= axes.rank) return SumReaders<d - 1>(axes, point, dy, weight, offset);
    const Axis& axis = axes.axis[d];
    const int64_t first = offset * axis.out.divisor();
    const int own = point[d];
    if (axis.taps == nullptr) return SumReaders<d - 1>(axes, point, dy, weight, first + own);
    const Readers readers = axis.readers[own];
    float sum = 0;
    for (int o = readers.first; o <= readers.last; ++o) {
      const Tap tap = axis.taps[o];
      const float share = (tap.index[0] == own ? tap.weight[0] : 0.0f) + (tap.index[1] == own ? tap.weight[1] : 0.0f);
      if (share != 0) sum += SumReaders<d - 1>(axes, point, dy, weight * share, first + o);
    }
    return sum;
  }
}

__global__ void ResizeGradKernel(int64_t count, Axes axes, const float* dy, float* dx) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    int point[kMostAxes] = {};
    auto rest = static_cast<uint32_t>(i);
    LS_UNROLL
    for (int d = 0; d < kMostAxes; ++d) {
      if (d < axes.rank) point[d] = static_cast<int>(axes.axis[d].in.Split(&rest));
    }
    dx[i] = SumReaders<kMostAxes - 1>(axes, point, dy, 1.0f, 0);
  }
}

__global__ void TapsKernel(ResizeAxis axis, Tap* taps) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < axis.out; at += stride) {
    const ResizeTaps exact = axis.At(at);
    taps[at] = {{static_cast<int>(exact.index[0]), static_cast<int>(exact.index[1])},
                {static_cast<float>(exact.weight[0]), static_cast<float>(exact.weight[1])}};
  }
}

// The first output coordinate whose tap on one side is at least `wanted`: indices do not fall.
__device__ int FirstFrom(const Tap* taps, int count, int side, int wanted) {
  int low = 0;
  while (low < count) {
    const int middle = low + (count - low) / 2;
    if (taps[middle].index[side] < wanted) {
      low = middle + 1;
    } else {
      count = middle;
    }
  }
  return low;
}

__global__ void ReadersKernel(int in, int out, const Tap* taps, Readers* readers) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < in; at += stride) {
    const auto i = static_cast<int>(at);
    readers[i] = {FirstFrom(taps, out, 1, i), FirstFrom(taps, out, 0, i + 1) - 1};
  }
}

std::vector<ResizeAxis> Collapsed(const std::vector<ResizeAxis>& axes) {
  std::vector<ResizeAxis> collapsed;
  for (const ResizeAxis& axis : axes) {
    if (axis.straight && !collapsed.empty() && collapsed.back().straight) {
      collapsed.back().in *= axis.in;
      collapsed.back().out *= axis.out;
    } else {
      collapsed.push_back(axis);
    }
  }
  return collapsed;
}

constexpr int64_t Rounded(int64_t bytes) { return (bytes + 15) / 16 * 16; }
int64_t TapBytes(const ResizeAxis& axis) { return axis.out * int64_t{sizeof(Tap)}; }
int64_t ReaderBytes(const ResizeAxis& axis) { return Rounded(axis.in * int64_t{sizeof(Readers)}); }

template <bool kBackward>
absl::Status Resize(const DeviceCall& call, StreamHandle stream) {
  const Shape& in = kBackward ? call.out_shape(0) : call.in_shape(0);
  const Shape& out = kBackward ? call.in_shape(0) : call.out_shape(0);
  const std::vector<ResizeAxis> all = Collapsed(ResizeAxes(call.attrs<ResizeAttributes>(), in, out));
  Axes axes = {.axis = {}, .rank = static_cast<int>(all.size())};
  std::byte* next = call.workspace;
  for (size_t i = 0; i < all.size(); ++i) {
    const ResizeAxis& from = all[i];
    Axis& axis = axes.axis[all.size() - 1 - i];
    axis = {FastDivide(from.in), FastDivide(from.out), nullptr, nullptr};
    if (from.straight) continue;
    auto* taps = reinterpret_cast<Tap*>(next);
    next += TapBytes(from);
    LS_RETURN_IF_ERROR(Launch(stream, {.blocks = {BlocksFor(from.out)}, .threads = {kBlock}}, &TapsKernel, from, taps));
    axis.taps = taps;
    if (!kBackward) continue;
    auto* readers = reinterpret_cast<Readers*>(next);
    next += ReaderBytes(from);
    LS_RETURN_IF_ERROR(Launch(stream, {.blocks = {BlocksFor(from.in)}, .threads = {kBlock}}, &ReadersKernel,
                              static_cast<int>(from.in), static_cast<int>(from.out), taps, readers));
    axis.readers = readers;
  }
  const int64_t count = NumElements(call.out_shape(0));
  return Launch(stream, {.blocks = {BlocksFor(count)}, .threads = {kBlock}},
                kBackward ? &ResizeGradKernel : &ResizeKernel, count, axes, call.in<float>(0), call.out<float>(0));
}

}  // namespace

OwnFunction OwnResize(const KernelRequest& request) {
  const bool backward = request.node->op == OpType::kResizeGrad;
  if (request.node->op != OpType::kResize && !backward) return {};
  if (request.outputs[0].dtype != DType::kF32) return {.refusal = kOtherType};
  const Shape& in = backward ? request.outputs[0].shape : request.inputs[0].shape;
  const Shape& out = backward ? request.inputs[0].shape : request.outputs[0].shape;
  const int64_t in_size = NumElements(in), out_size = NumElements(out);
  if (in_size == 0 || out_size == 0 || in_size > FastDivide::kMost || out_size > FastDivide::kMost)
    return {.refusal = kTooLarge};
  const std::vector<ResizeAxis> axes = Collapsed(ResizeAxes(AttributesOf<ResizeAttributes>(request), in, out));
  if (axes.size() > kMostAxes) return {.refusal = kManyDimensions};
  int64_t bytes = 0;
  for (const ResizeAxis& axis : axes) {
    if (!axis.straight) bytes += TapBytes(axis) + (backward ? ReaderBytes(axis) : 0);
  }
  return {backward ? &Resize<true> : &Resize<false>, "taps", static_cast<size_t>(bytes)};
}

}  // namespace lockstep::device::cuda
