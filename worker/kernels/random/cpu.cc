#include <algorithm>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/cpu/random_blocks.h"
#include "worker/kernels/random/draws.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr char kName[] = "own:random";  // outlives every OwnFunction

template <typename Block>
[[gnu::always_inline]] inline void Draw(const HostCall& call, Block block, double slope) {
  const auto& attributes = call.attrs<RandomLikeAttributes>();
  const RandomStream numbers = StreamOfPass(call.in<int64_t>(1), attributes.stream);
  float* y = call.out<float>(0);
  const auto a = static_cast<float>(attributes.a);
  const auto by = static_cast<float>(slope);
  const int64_t count = call.out_elements();
  ParallelFor((count + kNumbersAtOnce - 1) / kNumbersAtOnce, 8, [&](int64_t begin, int64_t end) {
    for (int64_t batch = begin; batch < end; ++batch) {
      std::array<uint32_t, 4> bits[kBlocksAtOnce];
      DrawBlocks(numbers, batch * kBlocksAtOnce, bits[0].data());
      float placed[kNumbersAtOnce];
      for (int64_t i = 0; i < kBlocksAtOnce; ++i) {
        const std::array<float, 4> drawn = block(bits[i]);
        for (size_t j = 0; j < 4; ++j) placed[static_cast<size_t>(i) * 4 + j] = Placed(drawn[j], a, by);
      }
      const int64_t first = batch * kNumbersAtOnce;
      std::copy_n(placed, std::min(count - first, kNumbersAtOnce), y + first);
    }
  });
}

void UniformLike(const HostCall& call) {
  const auto& attributes = call.attrs<RandomLikeAttributes>();
  Draw(
      call, [](const std::array<uint32_t, 4>& bits) { return UniformBlock(bits); }, attributes.b - attributes.a);
}

void NormalLike(const HostCall& call) {
  Draw(
      call, [](const std::array<uint32_t, 4>& bits) { return NormalBlock(bits); },
      call.attrs<RandomLikeAttributes>().b);
}

}  // namespace

OwnFunction OwnRandom(const KernelRequest& request) {
  switch (request.node->op) {
    case OpType::kUniformLike:
      return {&UniformLike, kName};
    case OpType::kNormalLike:
      return {&NormalLike, kName};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
