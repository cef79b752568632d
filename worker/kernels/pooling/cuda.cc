// Maxima and averages over windows and whole planes, and their gradients: a thread for each result. Gradients are
// gathered: each input element visits the windows that may have read it.
#include <limits>

#include "worker/device/cuda/runtime/code.h"
#include "worker/device/cuda/runtime/launch.h"
#include "worker/kernels/cuda/channels_last.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/window_numbers.h"

namespace lockstep::device::cuda {
namespace {

// What a window of padding alone, which dilation can make, gives.
template <typename T>
LS_HD constexpr T Lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

// A window over planes that lie one after another, or between each other where channels lie last.
struct Pooling : WindowNumbers {
  Pooling(const PoolAttributes& attributes, const Operand& x_operand, const Operand& y_operand)
      : WindowNumbers(Window(attributes), SpatialOf(x_operand.shape), SpatialOf(y_operand.shape)) {
    if (!IsChannelsLast(x_operand) && !IsChannelsLast(y_operand)) return;
    channels = FastDivide(x_operand.shape[1]);
    step = static_cast<int>(x_operand.shape[1]);
  }

  // Where an element lies in its plane, and which plane that is.
  struct Place {
    Point point;
    int outer;
    int channel;
  };
  LS_HD Place Find(const Plane& plane, int64_t index) const {
    auto rest = static_cast<uint32_t>(index);
    const auto channel = static_cast<int>(channels.Split(&rest));
    const Point point = plane.Split(&rest);
    return {point, static_cast<int>(rest), channel};
  }
  // The same plane of another tensor: element i is at i * step from there.
  LS_HD int First(const Place& place, const Plane& plane) const {
    return place.outer * plane.volume * step + place.channel;
  }

  FastDivide channels{1};
  int step = 1;
};

// Calls visit(offset) for the offset in the plane of every element of the window that begins at `begin`, in
// row-major order, as far as it lies inside.
template <typename Visit>
__device__ void ForEachInside(const WindowNumbers& w, const Point& begin, const Visit& visit) {
  for (int k0 = 0; k0 < w.kernel.extent[0]; ++k0) {
    const int i0 = begin.at[0] + k0 * w.dilation[0];
    if (i0 < 0 || i0 >= w.x.extent[0]) continue;
    for (int k1 = 0; k1 < w.kernel.extent[1]; ++k1) {
      const int i1 = begin.at[1] + k1 * w.dilation[1];
      if (i1 < 0 || i1 >= w.x.extent[1]) continue;
      for (int k2 = 0; k2 < w.kernel.extent[2]; ++k2) {
        const int i2 = begin.at[2] + k2 * w.dilation[2];
        if (i2 >= 0 && i2 < w.x.extent[2]) visit(w.x.Offset(i0, i1, i2));
      }
    }
  }
}

// Calls visit(position) for every position of y whose window may have read `i`, in row-major order.
template <typename Visit>
__device__ void ForEachReader(const WindowNumbers& w, const Point& i, const Visit& visit) {
  for (int o0 = w.FirstReader(0, i.at[0]); o0 <= w.LastReader(0, i.at[0]); ++o0) {
    for (int o1 = w.FirstReader(1, i.at[1]); o1 <= w.LastReader(1, i.at[1]); ++o1) {
      for (int o2 = w.FirstReader(2, i.at[2]); o2 <= w.LastReader(2, i.at[2]); ++o2) visit(Point{{o0, o1, o2}});
    }
  }
}

// A NaN wins over everything before it, and nothing after it.
template <typename T>
__global__ void MaxPoolKernel(int64_t count, Pooling w, const T* x, T* y, int32_t* argmax) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const Pooling::Place place = w.Find(w.y, i);
    const Point begin = w.Begin(place.point);
    const T* from = x + w.First(place, w.x);
    int best = -1;
    auto value = Lowest<Computed<T>>();
    ForEachInside(w, begin, [&](int at) {
      const Computed<T> here = from[at * w.step];
      if (best < 0 || here > value || (here != here && value == value)) {
        best = at;
        value = here;
      }
    });
    y[i] = value;
    if (argmax != nullptr) argmax[i] = best;
  }
}

template <typename T>
__global__ void MaxPoolGradKernel(int64_t count, Pooling w, const T* dy, const int32_t* argmax, T* dx) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const Pooling::Place place = w.Find(w.x, i);
    const Point& point = place.point;
    const int own = w.x.Offset(point.at[0], point.at[1], point.at[2]);
    const int first = w.First(place, w.y);
    float sum = 0;
    ForEachReader(w, point, [&](const Point& o) {
      const int at = first + w.y.Offset(o.at[0], o.at[1], o.at[2]) * w.step;
      if (argmax[at] == own) sum += dy[at];
    });
    dx[i] = sum;
  }
}

// How many elements the window of a position has, as Window::Count.
struct Counts {
  LS_HD int64_t Of(const Point& o) const { return window.Count(x, {o.at[0], o.at[1], o.at[2]}, padded); }
  Window window;
  Spatial x;
  bool padded;
};

template <typename T>
__global__ void AveragePoolKernel(int64_t count, Pooling w, Counts counts, const T* x, T* y) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const Pooling::Place place = w.Find(w.y, i);
    const T* from = x + w.First(place, w.x);
    float sum = 0;
    ForEachInside(w, w.Begin(place.point), [&](int at) { sum += from[at * w.step]; });
    const int64_t elements = counts.Of(place.point);
    y[i] = elements == 0 ? 0.0f : sum / static_cast<float>(elements);
  }
}

template <typename T>
__global__ void AveragePoolGradKernel(int64_t count, Pooling w, Counts counts, const T* dy, T* dx) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const Pooling::Place place = w.Find(w.x, i);
    const Point& point = place.point;
    const T* from = dy + w.First(place, w.y);
    float sum = 0;
    ForEachReader(w, point, [&](const Point& o) {
      const Point begin = w.Begin(o);
      for (int d = 0; d < 3; ++d) {
        if (w.dilation[d] > 1 && (point.at[d] - begin.at[d]) % w.dilation[d] != 0) return;
      }
      sum += from[w.y.Offset(o.at[0], o.at[1], o.at[2]) * w.step] / static_cast<float>(counts.Of(o));
    });
    dx[i] = sum;
  }
}

// A warp for each plane: lanes take elements in turn, then pairs of lanes meet.
template <bool kMax, typename T>
__global__ void PlaneKernel(int64_t planes, int64_t volume, const T* x, T* y) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t warps = int64_t{gridDim.x} * (kBlock / kWarp);
  const auto better = [](float a, float b) { return a > b || a != a ? a : b; };
  // All threads of a block go round equally often, so that every lane is there for the shuffles.
  for (int64_t first = int64_t{blockIdx.x} * (kBlock / kWarp); first < planes; first += warps) {
    const int64_t plane = first + static_cast<int>(threadIdx.x) / kWarp;
    float value = kMax ? Lowest<float>() : 0.0f;
    if (plane < planes) {
      for (int64_t i = lane; i < volume; i += kWarp) {
        const float here = x[plane * volume + i];
        value = kMax ? better(here, value) : value + here;
      }
    }
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      const float other = __shfl_xor_sync(kFullMask, value, distance);
      value = kMax ? better(other, value) : value + other;
    }
    if (lane == 0 && plane < planes) y[plane] = kMax ? value : value / static_cast<float>(volume);
  }
}

Counts CountsOf(const PoolAttributes& attributes, const Shape& x) {
  return {Window(attributes), SpatialOf(x), attributes.count_include_pad};
}

// Queues a kernel with a thread per element of the first output.
template <typename... Parameters, typename... Arguments>
absl::Status LaunchOver(const DeviceCall& call, StreamHandle stream, void (*kernel)(int64_t, Parameters...),
                        Arguments... arguments) {
  const int64_t count = NumElements(call.out_shape(0));
  return Launch(stream, {.blocks = {BlocksFor(count)}, .threads = {kBlock}}, kernel, count, arguments...);
}

// MaxPool and MaxPoolWithArgmax.
template <typename T>
absl::Status MaxPool(const DeviceCall& call, StreamHandle stream) {
  const Pooling w(call.attrs<PoolAttributes>(), call.input_infos[0], call.output_infos[0]);
  return LaunchOver(call, stream, &MaxPoolKernel<T>, w, call.in<T>(0), call.out<T>(0), call.out<int32_t>(1));
}

template <typename T>
absl::Status MaxPoolGrad(const DeviceCall& call, StreamHandle stream) {
  const Pooling w(call.attrs<PoolAttributes>(), call.output_infos[0], call.input_infos[0]);
  return LaunchOver(call, stream, &MaxPoolGradKernel<T>, w, call.in<T>(0), call.in<int32_t>(1), call.out<T>(0));
}

template <typename T>
absl::Status AveragePool(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<PoolAttributes>();
  const Pooling w(attributes, call.input_infos[0], call.output_infos[0]);
  return LaunchOver(call, stream, &AveragePoolKernel<T>, w, CountsOf(attributes, call.in_shape(0)), call.in<T>(0),
                    call.out<T>(0));
}

template <typename T>
absl::Status AveragePoolGrad(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<PoolAttributes>();
  const Pooling w(attributes, call.output_infos[0], call.input_infos[0]);
  return LaunchOver(call, stream, &AveragePoolGradKernel<T>, w, CountsOf(attributes, call.out_shape(0)), call.in<T>(0),
                    call.out<T>(0));
}

template <bool kMax, typename T>
absl::Status GlobalPool(const DeviceCall& call, StreamHandle stream) {
  const int64_t planes = NumElements(call.out_shape(0));
  if (planes == 0) return absl::OkStatus();
  return Launch(stream, {.blocks = {BlocksFor(planes, kBlock / kWarp)}, .threads = {kBlock}}, &PlaneKernel<kMax, T>,
                planes, VolumeOf(SpatialOf(call.in_shape(0))), call.in<T>(0), call.out<T>(0));
}

template <typename T>
OwnFunction FloatPooling(OpType op) {
  switch (op) {
    case OpType::kMaxPool:
    case OpType::kMaxPoolWithArgmax:
      return {&MaxPool<T>, "window"};
    case OpType::kMaxPoolGrad:
      return {&MaxPoolGrad<T>, "window"};
    case OpType::kAveragePool:
      return {&AveragePool<T>, "window"};
    case OpType::kAveragePoolGrad:
      return {&AveragePoolGrad<T>, "window"};
    case OpType::kGlobalAveragePool:
      return {&GlobalPool<false, T>, "plane"};
    case OpType::kGlobalMaxPool:
      return {&GlobalPool<true, T>, "plane"};
    default:
      return {};
  }
}

bool IsGradient(OpType op) { return op == OpType::kMaxPoolGrad || op == OpType::kAveragePoolGrad; }

}  // namespace

OwnFunction OwnPooling(const KernelRequest& request) {
  const OpType op = request.node->op;
  if (FloatPooling<float>(op).launch == nullptr) return {};
  if (op != OpType::kGlobalAveragePool && op != OpType::kGlobalMaxPool) {
    const Shape& in = request.inputs[0].shape;
    const Shape& out = request.outputs[0].shape;
    const Window window(AttributesOf<PoolAttributes>(request));
    if (!WindowFits(window, IsGradient(op) ? out : in, IsGradient(op) ? in : out)) return {.refusal = kTooLarge};
  }
  const DType type = request.outputs[0].dtype;
  if (type == DType::kF32) return FloatPooling<float>(op);
  if (type == DType::kBF16) return FloatPooling<Bf16>(op);
  if (op != OpType::kMaxPool) return {.refusal = kOtherType};
  switch (type) {
    case DType::kI64:
      return {&MaxPool<int64_t>, "window"};
    case DType::kI32:
      return {&MaxPool<int32_t>, "window"};
    case DType::kI8:
      return {&MaxPool<int8_t>, "window"};
    case DType::kU8:
      return {&MaxPool<uint8_t>, "window"};
    default:
      return {.refusal = kOtherType};
  }
}

}  // namespace lockstep::device::cuda
