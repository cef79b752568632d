// Random numbers.
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/map.h"
#include "worker/kernels/random/draws.h"

namespace lockstep::device::cuda {
namespace {

struct UniformDraw {
  LS_HD std::array<float, 4> operator()(const std::array<uint32_t, 4>& bits) const { return UniformBlock(bits); }
};
struct NormalDraw {
  LS_HD std::array<float, 4> operator()(const std::array<uint32_t, 4>& bits) const { return NormalBlock(bits); }
};

// Threads take four elements at a time, which are one block of random numbers.
template <typename T, typename Block>
__global__ void DrawKernel(int64_t count, uint64_t stream, T a, T slope, const int64_t* key, T* y) {
  const RandomStream numbers = StreamOfPass(key, stream);
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t block = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; block * 4 < count; block += stride) {
    const std::array<float, 4> drawn = Block()(numbers.Block(static_cast<uint64_t>(block)));
    LS_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (block * 4 + i < count) y[block * 4 + i] = Placed(drawn[static_cast<size_t>(i)], a, slope);
    }
  }
}

// Each derives the stream of numbers once: few of them.
constexpr int64_t kDrawBlocks = 1024;

template <typename T, typename Block>
absl::Status Draw(const DeviceCall& call, double slope, StreamHandle stream) {
  const auto& attributes = call.attrs<RandomLikeAttributes>();
  const int64_t count = NumElements(call.out_shape(0));
  if (count == 0) return absl::OkStatus();
  return Launch(stream, {.blocks = {BlocksFor(count, kBlock * 4, kDrawBlocks)}, .threads = {kBlock}},
                &DrawKernel<T, Block>, count, attributes.stream, static_cast<T>(attributes.a), static_cast<T>(slope),
                call.in<int64_t>(1), call.out<T>(0));
}

template <typename T>
absl::Status UniformLike(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<RandomLikeAttributes>();
  return Draw<T, UniformDraw>(call, attributes.b - attributes.a, stream);
}

template <typename T>
absl::Status NormalLike(const DeviceCall& call, StreamHandle stream) {
  return Draw<T, NormalDraw>(call, call.attrs<RandomLikeAttributes>().b, stream);
}

}  // namespace

OwnFunction OwnRandom(const KernelRequest& request) {
  const DType dtype = request.outputs[0].dtype;
  switch (request.node->op) {
    case OpType::kUniformLike:
      return ForFloating(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&UniformLike<T>, "random"}; });
    case OpType::kNormalLike:
      return ForFloating(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&NormalLike<T>, "random"}; });
    default:
      return {};
  }
}

}  // namespace lockstep::device::cuda
