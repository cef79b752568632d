#include "worker/kernels/random/draws.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

template <typename T, typename Block>
void Draw(const HostCall& call, Block block, double slope) {
  const auto& attributes = call.attrs<RandomLikeAttributes>();
  const RandomStream numbers = StreamOfPass(call.in<int64_t>(1), attributes.stream);
  T* y = call.out<T>(0);
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) {
    const std::array<float, 4> drawn = block(numbers.Block(static_cast<uint64_t>(i / 4)));
    y[i] = Placed(drawn[static_cast<size_t>(i % 4)], static_cast<T>(attributes.a), static_cast<T>(slope));
  }
}

template <typename T>
void UniformLike(const HostCall& call) {
  const auto& attributes = call.attrs<RandomLikeAttributes>();
  Draw<T>(call, UniformBlock, attributes.b - attributes.a);
}

template <typename T>
void NormalLike(const HostCall& call) {
  Draw<T>(call, NormalBlock, call.attrs<RandomLikeAttributes>().b);
}

}  // namespace

template <typename T>
HostFunction RandomFunction(OpType type) {
  switch (type) {
    case OpType::kUniformLike:
      return &UniformLike<T>;
    case OpType::kNormalLike:
      return &NormalLike<T>;
    default:
      return nullptr;
  }
}

template HostFunction RandomFunction<float>(OpType);
template HostFunction RandomFunction<double>(OpType);

}  // namespace lockstep::device::reference
