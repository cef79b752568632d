// Padding and its gradient.
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/rows.h"
#include "worker/kernels/element_bits.h"
#include "worker/kernels/padding/padding.h"

namespace lockstep::device::cuda {
namespace {

constexpr int kMostAxes = kMostOuter + 1;

// The axes, innermost first. Neighbours that are not padded are one.
struct Padding {
  bool fits = true;
  int count = 0;
  PadAxis axes[kMostAxes];
  WideDivide extents[kMostAxes];  // of X
  WideDivide padded[kMostAxes];
  int64_t steps[kMostAxes];  // in X
  int64_t padded_steps[kMostAxes];

  void Add(const PadAxis& axis) {
    const bool plain = axis.before == 0 && axis.behind == 0;
    if (plain && count > 0 && axes[count - 1].before == 0 && axes[count - 1].behind == 0) {
      axes[count - 1].extent *= axis.extent;
      axes[count - 1].padded *= axis.padded;
    } else if (count == kMostAxes) {
      fits = false;
    } else {
      axes[count++] = axis;
    }
  }
};

// REQUIRES: neither tensor is empty.
Padding PaddingOf(const PadAttributes& pad, const Shape& x, const Shape& y) {
  Padding made;
  const auto rank = static_cast<int64_t>(x.size());
  for (size_t i = x.size(); i-- > 0;) {
    const PadRange range = pad.RangeOf(static_cast<int64_t>(i), rank);
    made.Add({pad.mode, range.before, range.behind, x[i], y[i]});
  }
  if (made.count == 0) made.Add({});
  int64_t step = 1;
  int64_t padded_step = 1;
  for (int d = 0; d < made.count; ++d) {
    made.extents[d] = WideDivide(made.axes[d].extent);
    made.padded[d] = WideDivide(made.axes[d].padded);
    made.steps[d] = step;
    made.padded_steps[d] = padded_step;
    step *= made.axes[d].extent;
    padded_step *= made.axes[d].padded;
  }
  return made;
}

template <typename T>
__global__ void PadKernel(Padding padding, int64_t rows, T value, const T* x, T* y) {
  const int64_t width = padding.axes[0].padded;
  LS_FOR_ROWS(row, rows) {
    int64_t rest = row;
    int64_t offset = 0;
    bool inside = true;
    for (int d = 1; d < padding.count; ++d) {
      const int64_t source = padding.axes[d].Source(padding.padded[d].Split(&rest));
      inside = inside && source >= 0;
      offset += source * padding.steps[d];
    }
    LS_FOR_COLUMNS(column, width) {
      const int64_t source = inside ? padding.axes[0].Source(column) : -1;
      y[row * width + column] = source < 0 ? value : x[offset + source];
    }
  }
}

// The sum of all dY that an element of X was copied to, in their order.
template <typename T>
__global__ void PadGradKernel(Padding padding, int64_t count, const T* dy, T* dx) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    int64_t source[kMostAxes];
    int64_t at[kMostAxes];
    int64_t rest = i;
    bool copied = true;
    for (int d = 0; d < padding.count; ++d) {
      source[d] = padding.extents[d].Split(&rest);
      at[d] = padding.axes[d].Next(source[d], -1);
      copied = copied && at[d] < padding.axes[d].padded;
    }
    double sum = 0;
    while (copied) {
      int64_t offset = 0;
      for (int d = 0; d < padding.count; ++d) offset += at[d] * padding.padded_steps[d];
      sum += dy[offset];
      copied = false;
      for (int d = 0; d < padding.count && !copied; ++d) {
        at[d] = padding.axes[d].Next(source[d], at[d]);
        copied = at[d] < padding.axes[d].padded;
        if (!copied) at[d] = padding.axes[d].Next(source[d], -1);
      }
    }
    dx[i] = static_cast<T>(sum);
  }
}

template <typename T>
absl::Status Pad(const DeviceCall& call, StreamHandle stream) {
  const auto& pad = call.attrs<PadAttributes>();
  const T value = NumberBits<T>(call.output_infos[0].dtype, pad.value);
  const Shape& to = call.out_shape(0);
  const int64_t count = NumElements(to);
  if (count == 0) return absl::OkStatus();
  if (NumElements(call.in_shape(0)) == 0) {
    T* y = call.out<T>(0);
    return ForEach(
        stream, count, LS_KERNEL_LAMBDA(int64_t i) { y[i] = value; });
  }
  const Padding padding = PaddingOf(pad, call.in_shape(0), to);
  const int64_t rows = count / padding.axes[0].padded;
  return Launch(stream, RowsShape(rows, padding.axes[0].padded), &PadKernel<T>, padding, rows, value, call.in<T>(0),
                call.out<T>(0));
}

template <typename T>
absl::Status PadGrad(const DeviceCall& call, StreamHandle stream) {
  const int64_t count = NumElements(call.out_shape(0));
  if (count == 0) return absl::OkStatus();
  if (NumElements(call.in_shape(0)) == 0) {
    return Zero(stream, call.outputs[0], static_cast<size_t>(count) * sizeof(T));
  }
  const Padding padding = PaddingOf(call.attrs<PadAttributes>(), call.out_shape(0), call.in_shape(0));
  return Launch(stream, {.blocks = {BlocksFor(count)}, .threads = {kBlock}}, &PadGradKernel<T>, padding, count,
                call.in<T>(0), call.out<T>(0));
}

}  // namespace

OwnFunction OwnPadding(const KernelRequest& request) {
  const OpType op = request.node->op;
  if (op != OpType::kPad && op != OpType::kPadGrad) return {};
  const Shape& input = request.inputs[0].shape;
  const Shape& output = request.outputs[0].shape;
  const bool back = op == OpType::kPadGrad;
  if (NumElements(input) > 0 && NumElements(output) > 0 &&
      !PaddingOf(AttributesOf<PadAttributes>(request), back ? output : input, back ? input : output).fits) {
    return {.refusal = kManyDimensions};
  }
  const DType dtype = request.outputs[0].dtype;
  if (back) return ForFloating(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&PadGrad<T>, "pad"}; });
  return ForBits(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&Pad<T>, "pad"}; });
}

}  // namespace lockstep::device::cuda
