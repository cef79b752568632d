#include <algorithm>

#include "common/math/rounding.h"
#include "common/random/random.h"
#include "worker/kernels/arithmetic/arithmetic.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/own_loops.h"
#include "worker/kernels/cpu/random_blocks.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr char kName[] = "own:elementwise";  // outlives every OwnFunction

void DropoutTraining(const HostCall& call) {
  const auto& attributes = call.attrs<DropoutAttributes>();
  const float* x = call.in<float>(0);
  const int64_t* random = call.in<int64_t>(1);
  float* y = call.out<float>(0);
  bool* mask = call.out<bool>(1);
  const uint32_t threshold = DropThreshold(attributes.ratio);
  const RandomStream stream =
      RandomStream::For(static_cast<uint64_t>(random[0]), attributes.stream, static_cast<uint64_t>(random[1]),
                        static_cast<uint32_t>(random[2]), static_cast<uint32_t>(random[3]));
  const auto scale = static_cast<float>(1.0 / (1.0 - attributes.ratio));
  const int64_t count = call.out_elements();
  // Copies, since the compiler takes a float that is captured by reference for one that `y` may point to.
  const auto draw = [=](int64_t begin, int64_t end) {
    for (int64_t batch = begin; batch < end; ++batch) {
      uint32_t numbers[kNumbersAtOnce];
      DrawBlocks(stream, batch * kBlocksAtOnce, numbers);
      const int64_t first = batch * kNumbersAtOnce, drawn = std::min(count - first, kNumbersAtOnce);
#pragma GCC ivdep
      for (int64_t i = 0; i < drawn; ++i) y[first + i] = numbers[i] >= threshold ? x[first + i] * scale : 0.0f;
      if (mask == nullptr) continue;
      for (int64_t i = 0; i < drawn; ++i) mask[first + i] = numbers[i] >= threshold;
    }
  };
  ParallelFor((count + kNumbersAtOnce - 1) / kNumbersAtOnce, kGrain / 4 / kNumbersAtOnce, draw);
}

void DropoutGrad(const HostCall& call) {
  const float* dy = call.in<float>(0);
  const uint8_t* mask = call.in<uint8_t>(1);
  float* dx = call.out<float>(0);
  const auto scale = static_cast<float>(1.0 / (1.0 - call.attrs<DropoutAttributes>().ratio));
  ParallelFor(call.out_elements(), kGrain, [&](int64_t begin, int64_t end) {
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      const float scaled = dy[i] * scale;
      dx[i] = mask[i] != 0 ? scaled : 0.0f;
    }
  });
}

HostFunction Rounding(OpType op) {
  switch (op) {
    case OpType::kSign:
      return [](const HostCall& call) { Unary(call, [](float x) { return Sign(x); }); };
    case OpType::kFloor:
      return [](const HostCall& call) { Unary(call, [](float x) { return Floor(x); }); };
    case OpType::kCeil:
      return [](const HostCall& call) { Unary(call, [](float x) { return Ceil(x); }); };
    case OpType::kRound:
      return [](const HostCall& call) { Unary(call, [](float x) { return RoundEven(x); }); };
    default:
      return nullptr;
  }
}

}  // namespace

OwnFunction OwnElementwise(const KernelRequest& request) {
  switch (request.node->op) {
    case OpType::kScale:
      return {[](const HostCall& call) {
                const auto factor = static_cast<float>(call.attrs<ScaleAttributes>().factor);
                Unary(call, [factor](float x) { return x * factor; });
              },
              kName, true};
    case OpType::kDropoutTraining:
      return {&DropoutTraining, kName};
    case OpType::kDropoutGrad:
      return {&DropoutGrad, kName};
    default:
      if (const HostFunction rounds = Rounding(request.node->op); rounds != nullptr) return {rounds, kName, true};
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
