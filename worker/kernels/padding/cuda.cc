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

struct Padding : PadAxes<kMostAxes> {
  // REQUIRES: neither tensor is empty.
  Padding(const PadAttributes& pad, const Shape& x, const Shape& y) : PadAxes(pad, x, y) {
    int64_t step = 1;
    int64_t padded_step = 1;
    for (int d = 0; d < count; ++d) {
      extents[d] = WideDivide(axes[d].extent);
      padded[d] = WideDivide(axes[d].padded);
      steps[d] = step;
      padded_steps[d] = padded_step;
      step *= axes[d].extent;
      padded_step *= axes[d].padded;
    }
  }

  WideDivide extents[kMostAxes];  // of X
  WideDivide padded[kMostAxes];
  int64_t steps[kMostAxes];  // in X
  int64_t padded_steps[kMostAxes];
};

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
  const Padding padding(pad, call.in_shape(0), to);
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
  const Padding padding(call.attrs<PadAttributes>(), call.out_shape(0), call.in_shape(0));
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
      !Padding(AttributesOf<PadAttributes>(request), back ? output : input, back ? input : output).fits) {
    return {.refusal = kManyDimensions};
  }
  const DType dtype = request.outputs[0].dtype;
  if (back) return ForFloating(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&PadGrad<T>, "pad"}; });
  return ForBits(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&Pad<T>, "pad"}; });
}

}  // namespace lockstep::device::cuda
