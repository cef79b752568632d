#include "worker/kernels/batch_norm/cpu_blocked.h"

#include <algorithm>
#include <type_traits>

#include "common/math/math.h"
#include "worker/kernels/cpu/parallel.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

// X as [batch, blocks, plane, kBlock].
struct Extents {
  Extents(const Shape& x, int64_t block) : batch(x[0]), channels(x[1]), blocks((x[1] + block - 1) / block), plane(1) {
    for (size_t i = 2; i < x.size(); ++i) plane *= x[i];
  }
  int64_t batch;
  int64_t channels;
  int64_t blocks;
  int64_t plane;
};

constexpr int64_t kChains = 4;  // sums that run side by side, so that an addition need not wait for the one before

// Two sums per channel of a block; chain c takes positions c, c + kChains, ... of every plane.
template <int64_t kBlock>
struct Sums {
  double first[kChains][kBlock] = {};
  double second[kChains][kBlock] = {};

  // Adds up the chains into the first one.
  void Fold() {
    for (int64_t c = 1; c < kChains; ++c) {
      for (int64_t l = 0; l < kBlock; ++l) {
        first[0][l] += first[c][l];
        second[0][l] += second[c][l];
      }
    }
  }
};

// The numbers of a block's channels, zero for those that fill it up.
template <int64_t kBlock>
struct PerChannel {
  PerChannel() = default;
  PerChannel(const float* from, int64_t count) {
    for (int64_t l = 0; l < kBlock; ++l) at[l] = l < count ? from[l] : 0.0f;
  }
  float at[kBlock] = {};
};

// Sums and squares of the distance to the channel's first element, which keeps large means from cancelling.
template <int64_t kBlock>
void AddMoments(const float* x, int64_t plane, const PerChannel<kBlock>& origin, Sums<kBlock>* sums) {
  const auto add = [&](int64_t i, int64_t c) {
    for (int64_t l = 0; l < kBlock; ++l) {
      const double distance = double{x[i * kBlock + l]} - double{origin.at[l]};
      sums->first[c][l] += distance;
      sums->second[c][l] += distance * distance;
    }
  };
  int64_t i = 0;
  for (; i + kChains <= plane; i += kChains) {
    for (int64_t c = 0; c < kChains; ++c) add(i + c, c);
  }
  for (int64_t c = 0; i < plane; ++i, ++c) add(i, c);
}

template <int64_t kBlock>
void TrainBlock(const HostCall& call, const Extents& e, int64_t b) {
  const auto& attributes = call.attrs<BatchNormAttributes>();
  const auto count = static_cast<double>(e.batch * e.plane);
  const int64_t first = b * kBlock;
  const int64_t used = std::min(kBlock, e.channels - first);
  const int64_t size = e.plane * kBlock;
  const float* x = call.in<float>(0);
  const PerChannel<kBlock> origin(x + b * size, kBlock);
  Sums<kBlock> sums;
  for (int64_t n = 0; n < e.batch; ++n) AddMoments(x + (n * e.blocks + b) * size, e.plane, origin, &sums);
  sums.Fold();
  PerChannel<kBlock> middle, factor;
  PerChannel<kBlock> shift(call.in<float>(2) + first, used);
  const bool unbiased = attributes.unbiased_running_var && count > 1;
  for (int64_t l = 0; l < used; ++l) {
    const double offset = sums.first[0][l] / count;
    const double squares = std::max(0.0, sums.second[0][l] - sums.first[0][l] * offset);
    const double mean = double{origin.at[l]} + offset;
    const double inv_std = 1.0 / SquareRoot(squares / count + attributes.epsilon);
    middle.at[l] = static_cast<float>(mean);
    factor.at[l] = static_cast<float>(inv_std * call.in<float>(1)[first + l]);
    if (call.out<float>(1) != nullptr) call.out<float>(1)[first + l] = static_cast<float>(mean);
    if (call.out<float>(2) != nullptr) call.out<float>(2)[first + l] = static_cast<float>(inv_std);
    if (call.out<float>(3) != nullptr) {
      call.out<float>(3)[first + l] = static_cast<float>(squares / (unbiased ? count - 1 : count));
    }
  }
  for (int64_t n = 0; n < e.batch; ++n) {
    const float* from = x + (n * e.blocks + b) * size;
    float* to = call.out<float>(0) + (n * e.blocks + b) * size;
#pragma GCC ivdep
    for (int64_t i = 0; i < e.plane; ++i) {
      for (int64_t l = 0; l < kBlock; ++l) {
        to[i * kBlock + l] = (from[i * kBlock + l] - middle.at[l]) * factor.at[l] + shift.at[l];
      }
    }
  }
}

// Sums of dY and of dY * xhat.
template <int64_t kBlock>
void AddProducts(const float* dy, const float* x, int64_t plane, const PerChannel<kBlock>& mean,
                 const PerChannel<kBlock>& inv_std, Sums<kBlock>* sums) {
  const auto add = [&](int64_t i, int64_t c) {
    for (int64_t l = 0; l < kBlock; ++l) {
      const double g = dy[i * kBlock + l];
      sums->first[c][l] += g;
      sums->second[c][l] += g * (double{x[i * kBlock + l]} - double{mean.at[l]}) * double{inv_std.at[l]};
    }
  };
  int64_t i = 0;
  for (; i + kChains <= plane; i += kChains) {
    for (int64_t c = 0; c < kChains; ++c) add(i + c, c);
  }
  for (int64_t c = 0; i < plane; ++i, ++c) add(i, c);
}

// dX = scale * inv_std * (dY - sum(dY) / n - xhat * sum(dY * xhat) / n), xhat = (x - mean) * inv_std.
template <int64_t kBlock>
void GradientBlock(const HostCall& call, const Extents& e, int64_t b) {
  const auto count = static_cast<double>(e.batch * e.plane);
  const int64_t first = b * kBlock;
  const int64_t used = std::min(kBlock, e.channels - first);
  const int64_t size = e.plane * kBlock;
  const PerChannel<kBlock> mean(call.in<float>(3) + first, used);
  const PerChannel<kBlock> inv_std(call.in<float>(4) + first, used);
  Sums<kBlock> sums;
  for (int64_t n = 0; n < e.batch; ++n) {
    const int64_t at = (n * e.blocks + b) * size;
    AddProducts(call.in<float>(0) + at, call.in<float>(1) + at, e.plane, mean, inv_std, &sums);
  }
  sums.Fold();
  PerChannel<kBlock> factor, mean_dy, slope;
  for (int64_t l = 0; l < used; ++l) {
    if (call.out<float>(1) != nullptr) call.out<float>(1)[first + l] = static_cast<float>(sums.second[0][l]);
    if (call.out<float>(2) != nullptr) call.out<float>(2)[first + l] = static_cast<float>(sums.first[0][l]);
    factor.at[l] = call.in<float>(2)[first + l] * inv_std.at[l];
    mean_dy.at[l] = static_cast<float>(sums.first[0][l] / count);
    slope.at[l] = static_cast<float>(sums.second[0][l] / count * double{inv_std.at[l]});
  }
  if (call.out<float>(0) == nullptr) return;
  for (int64_t n = 0; n < e.batch; ++n) {
    const int64_t at = (n * e.blocks + b) * size;
    const float* dy = call.in<float>(0) + at;
    const float* x = call.in<float>(1) + at;
    float* dx = call.out<float>(0) + at;
#pragma GCC ivdep
    for (int64_t i = 0; i < e.plane; ++i) {
      for (int64_t l = 0; l < kBlock; ++l) {
        const int64_t j = i * kBlock + l;
        dx[j] = factor.at[l] * (dy[j] - mean_dy.at[l] - (x[j] - mean.at[l]) * slope.at[l]);
      }
    }
  }
}

// work(size, extents, b) for each block of the input.
template <typename Work>
void ForBlocks(const HostCall& call, const Work& work) {
  const int64_t block = call.input_infos[0].layout.channel_block;
  const Extents e(call.in_shape(0), block);
  const auto for_all = [&](auto size) {
    ParallelFor(e.blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) work(size, e, b);
    });
  };
  if (block == 4) return for_all(std::integral_constant<int64_t, 4>());
  if (block == 8) return for_all(std::integral_constant<int64_t, 8>());
  for_all(std::integral_constant<int64_t, 16>());
}

}  // namespace

void BlockedTraining(const HostCall& call) {
  ForBlocks(call, [&](auto size, const Extents& e, int64_t b) { TrainBlock<size()>(call, e, b); });
}

void BlockedGradient(const HostCall& call) {
  ForBlocks(call, [&](auto size, const Extents& e, int64_t b) { GradientBlock<size()>(call, e, b); });
}

}  // namespace lockstep::device::cpu::LS_CODE
