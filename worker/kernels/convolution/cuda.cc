// Conv, ConvTranspose and the gradients of convolutions as products over tiles, with a ReLU behind them where a plan
// fuses one.
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/convolution/cuda_factors.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/tile_launch.h"

namespace lockstep::device::cuda {
namespace {

// The shapes of a convolution's three tensors, whatever is computed of them.
struct Shapes {
  Shape x;
  Shape w;
  Shape y;
};

// `In` and `Out` say where a node's shapes are.
template <typename In, typename Out>
Shapes ShapesOf(OpType op, const In& in, const Out& out) {
  switch (op) {
    case OpType::kConv:
      return {in(0), in(1), out(0)};
    case OpType::kConvGradWeight:
      return {in(1), out(0), in(0)};
    default:
      return {out(0), in(1), in(0)};
  }
}

TilePlan PlanOf(OpType op, const ConvAttributes& attributes, const Shapes& shapes) {
  const auto& [x, w, y] = shapes;
  const int64_t kernel = NumElements(w) / (w[0] * w[1]);
  const int64_t y_per_group = w[0] / attributes.group;
  const int64_t x_volume = VolumeOf(SpatialOf(x)), y_volume = VolumeOf(SpatialOf(y));
  switch (op) {
    case OpType::kConv:
      return TilePlan::For(y_per_group, y[0] * y_volume, w[1] * kernel, attributes.group);
    case OpType::kConvGradWeight:
      return TilePlan::For(y_per_group, w[1] * kernel, y[0] * y_volume, attributes.group);
    default:
      return TilePlan::For(w[1], x[0] * x_volume, y_per_group * kernel, attributes.group);
  }
}

Convolution Describe(const ConvAttributes& attributes, const Shapes& shapes) {
  const auto& [x, w, y] = shapes;
  return {.window = WindowNumbers(Window(attributes), SpatialOf(x), SpatialOf(y)),
          .samples = static_cast<int>(x[0]),
          .x_channels = static_cast<int>(x[1]),
          .y_channels = static_cast<int>(y[1]),
          .x_per_group = static_cast<int>(w[1]),
          .y_per_group = static_cast<int>(w[0] / attributes.group)};
}

ImageResult ResultOf(const DeviceCall& call, int per_group, bool relu) {
  const Shape& shape = call.out_shape(0);
  const int64_t volume = VolumeOf(SpatialOf(shape));
  return {.image = call.out<float>(0),
          .bias = call.in<float>(2),
          .channels = static_cast<int>(shape[1]),
          .per_group = per_group,
          .volume = static_cast<int>(volume),
          .by_volume = FastDivide(volume),
          .columns = static_cast<int>(shape[0] * volume),
          .relu = relu,
          .packed = RowsArePackable(call.out<float>(0), volume)};
}

struct Prepared {
  explicit Prepared(const DeviceCall& call)
      : attributes(call.attrs<ConvAttributes>()),
        shapes(ShapesOf(
            call.op, [&](size_t i) { return call.in_shape(i); }, [&](size_t i) { return call.out_shape(i); })),
        plan(PlanOf(call.op, attributes, shapes)),
        convolution(Describe(attributes, shapes)) {}
  const ConvAttributes& attributes;
  const Shapes shapes;
  const TilePlan plan;
  const Convolution convolution;
};

// A run of groups, `size` elements apart.
BatchOffsets Groups(int64_t groups, int64_t size) {
  BatchOffsets offsets;
  offsets.runs = 1;
  offsets.extents[0] = FastDivide(groups);
  offsets.strides[0] = size;
  return offsets;
}

template <bool kRelu>
absl::Status Conv(const DeviceCall& call, StreamHandle stream) {
  const Prepared p(call);
  const int64_t row = p.plan.k;
  return LaunchProduct(
      stream, p.plan, MatrixFactor<true>(call.in<float>(1), row, p.plan.m, Groups(p.plan.count, p.plan.m * row)),
      WindowsOfX{p.convolution, call.in<float>(0)}, ResultOf(call, p.convolution.y_per_group, kRelu), call.workspace);
}

// ConvGradInput, and ConvTranspose, which may add a bias.
template <bool kRelu>
absl::Status ConvGradInput(const DeviceCall& call, StreamHandle stream) {
  const Prepared p(call);
  return LaunchProduct(stream, p.plan, WeightsByX{p.convolution, call.in<float>(1)},
                       ReadersOfX{p.convolution, call.in<float>(0)}, ResultOf(call, p.convolution.x_per_group, kRelu),
                       call.workspace);
}

// sums[channel] of y [samples, channels, volume]: a block per channel.
__global__ void ChannelSumKernel(const float* y, int samples, int channels, int volume, FastDivide by_volume,
                                 float* sums) {
  __shared__ float shared[kBlock];
  const int count = samples * volume;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kBlock) {
    auto sample = static_cast<uint32_t>(i);
    const auto at = static_cast<int>(by_volume.Split(&sample));
    sum += y[(int64_t{sample} * channels + blockIdx.x) * volume + at];
  }
  shared[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = kBlock / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = shared[0];
}

absl::Status ConvGradWeight(const DeviceCall& call, StreamHandle stream) {
  const Prepared p(call);
  const Convolution& c = p.convolution;
  const float* dy = call.in<float>(0);
  const int volume = c.window.y.volume;
  LS_RETURN_IF_ERROR(LaunchProduct(stream, p.plan, ChannelsOfY{c, dy, RowsArePackable(dy, volume)},
                                   ElementsOfX{c, call.in<float>(1)},
                                   MatrixResult{.y = call.out<float>(0),
                                                .m = static_cast<int>(p.plan.m),
                                                .n = static_cast<int>(p.plan.n),
                                                .packed = RowsArePackable(call.out<float>(0), p.plan.n)},
                                   call.workspace));
  if (call.out<float>(1) == nullptr) return absl::OkStatus();
  return Launch(stream, {.blocks = {static_cast<unsigned>(c.y_channels)}, .threads = {kBlock}}, &ChannelSumKernel, dy,
                c.samples, c.y_channels, volume, c.window.y.by_volume, call.out<float>(1));
}

}  // namespace

OwnFunction OwnConvolution(const KernelRequest& request) {
  const OpType op = request.node->op;
  if (op != OpType::kConv && op != OpType::kConvTranspose && op != OpType::kConvGradInput &&
      op != OpType::kConvGradWeight) {
    return {};
  }
  if (request.outputs[0].dtype != DType::kF32) return {.refusal = kOtherType};
  const Shapes shapes = ShapesOf(
      op, [&](size_t i) { return request.inputs[i].shape; }, [&](size_t i) { return request.outputs[i].shape; });
  const auto& attributes = AttributesOf<ConvAttributes>(request);
  if (!WindowFits(Window(attributes), shapes.x, shapes.y) || NumElements(shapes.w) == 0) return {.refusal = kTooLarge};
  const TilePlan plan = PlanOf(op, attributes, shapes);
  if (!plan.fits() || NumElements(shapes.w) > FastDivide::kMost) return {.refusal = kTooLarge};
  const bool relu = request.epilogue == Epilogue::kRelu;
  switch (op) {
    case OpType::kConv:
      return {relu ? &Conv<true> : &Conv<false>, "tile", plan.workspace_bytes(), request.epilogue};
    case OpType::kConvGradWeight:
      return {&ConvGradWeight, "tile", plan.workspace_bytes()};
    default:
      return {relu ? &ConvGradInput<true> : &ConvGradInput<false>, "tile", plan.workspace_bytes(), request.epilogue};
  }
}

}  // namespace lockstep::device::cuda
