#include "worker/kernels/cuda/block_reduce.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <vector>

#include "worker/device/cuda/runtime/launch.h"

namespace lockstep::device::cuda {
namespace {

constexpr int kThreads = 256;

struct Extremes {
  float low;
  float high;
  int64_t count;
};

struct JoinExtremes {
  Extremes operator()(const Extremes& a, const Extremes& b) const {
    return {a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high, a.count + b.count};
  }
};

template <typename T, typename Fold>
__global__ void FoldKernel(const T* in, T* of_warp, T* of_block, Fold fold) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  of_warp[i] = WarpFold(in[i], fold);
  of_block[i] = BlockFold<kThreads>(in[i], fold);
  // A second fold must not meet the values of the first.
  of_block[i] = fold(of_block[i], BlockFold<kThreads>(of_block[i], fold));
}

template <typename T, typename Fold>
void CheckFolds(const std::vector<T>& in, Fold fold, std::function<bool(const T&, const T&)> equal) {
  const size_t bytes = in.size() * sizeof(T);
  REQUIRE(SelectDevice(0).ok());
  const StreamHandle stream = *CreateStream();
  std::byte* memory[3];
  for (std::byte*& m : memory) m = *AllocateDevice(bytes);
  std::vector<T> out[2] = {in, in};
  REQUIRE(CopyToDevice(stream, memory[0], reinterpret_cast<const std::byte*>(in.data()), bytes).ok());
  REQUIRE(Launch(stream, {.blocks = {static_cast<unsigned>(in.size() / kThreads)}, .threads = {kThreads}},
                 &FoldKernel<T, Fold>, reinterpret_cast<T*>(memory[0]), reinterpret_cast<T*>(memory[1]),
                 reinterpret_cast<T*>(memory[2]), fold)
              .ok());
  for (size_t o = 0; o < 2; ++o) {
    REQUIRE(CopyToHost(stream, reinterpret_cast<std::byte*>(out[o].data()), memory[o + 1], bytes).ok());
  }
  REQUIRE(Synchronize(stream).ok());

  // The tree: lanes that differ in one bit, from the highest on, then the warps in order.
  std::vector<T> warps = in;
  for (size_t bit = 16; bit > 0; bit /= 2) {
    const std::vector<T> before = warps;
    for (size_t i = 0; i < in.size(); ++i) warps[i] = fold(before[i], before[i ^ bit]);
  }
  int wrong = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    wrong += equal(out[0][i], warps[i]) ? 0 : 1;
    const size_t first = i / kThreads * kThreads;
    T block = warps[first];
    for (size_t w = 1; w < kThreads / kWarp; ++w) block = fold(block, warps[first + w * kWarp]);
    T again = block;
    for (int bit = 16; bit > 0; bit /= 2) again = fold(again, again);
    const T of_warp = again;
    for (size_t w = 1; w < kThreads / kWarp; ++w) again = fold(again, of_warp);
    wrong += equal(out[1][i], fold(block, again)) ? 0 : 1;
  }
  CHECK(wrong == 0);
  for (std::byte* m : memory) FreeDevice(m);
  DestroyStream(stream);
}

TEST_CASE("block reduce: every thread gets the fold of a fixed tree, over its warp and over its block", "[cuda]") {
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<Extremes> extremes;
  for (int i = 0; i < 3 * kThreads; ++i) {
    const float value = 1.0f / static_cast<float>(i * 7919 % 1013 + 1);
    floats.push_back(value);
    doubles.push_back(value / 3.0);
    extremes.push_back({value, value, 1});
  }

  CheckFolds<float>(
      floats, [](float a, float b) { return a + b; }, [](float a, float b) { return a == b; });
  CheckFolds<double>(
      doubles, [](double a, double b) { return a + b; }, [](double a, double b) { return a == b; });
  CheckFolds<Extremes>(extremes, JoinExtremes(), [](const Extremes& a, const Extremes& b) {
    return a.low == b.low && a.high == b.high && a.count == b.count;
  });
}

}  // namespace
}  // namespace lockstep::device::cuda
