// Launches matrix products by tile_product.h: chooses the tile size, and whether sums are split (split-K).
//
// Threading: immutable; LaunchProduct is called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_TILE_LAUNCH_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_TILE_LAUNCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/launch.h"
#include "worker/kernels/cuda/fast_divide.h"
#include "worker/kernels/cuda/tile_product.h"

namespace lockstep::device::cuda {

// `count` products of [m, k] by [k, n]. If there are too few tiles to occupy a GPU and k is large, every sum is split
// into `parts` of `depth` steps, which are stored in the workspace and added in order. The plan depends on these four
// numbers alone.
struct TilePlan {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t count = 1;
  int64_t depth = 0;
  int64_t parts = 1;

  static TilePlan For(int64_t m, int64_t n, int64_t k, int64_t count) {
    // kEnough: blocks, about twice the multiprocessors of a large GPU. kPart: the least k that is worth a block.
    constexpr int64_t kEnough = 256, kPart = 256;
    TilePlan plan{.m = m, .n = n, .k = k, .count = count, .depth = k};
    const int64_t tiles = std::max<int64_t>(plan.Tiles(64), 1);
    const int64_t parts = std::min((kEnough + tiles - 1) / tiles, k / kPart);
    if (tiles > kEnough / 2 || parts < 2) return plan;
    plan.depth = ((k + parts - 1) / parts + 15) / 16 * 16;
    plan.parts = (k + plan.depth - 1) / plan.depth;
    return plan;
  }

  int64_t Tiles(int64_t side) const { return (m + side - 1) / side * ((n + side - 1) / side) * count; }
  // Tiles of 128 x 128 read less memory; used when there are enough of them.
  bool large() const { return parts == 1 && m > 64 && n > 64 && Tiles(128) >= 256; }
  size_t workspace_bytes() const { return parts == 1 ? 0 : static_cast<size_t>(parts * count * m * n) * sizeof(float); }
  // Whether all numbers fit the kernels' 32-bit arithmetic.
  bool fits() const {
    const int64_t most = FastDivide::kMost / 2;
    return std::max({m, n, k, count, parts}) < most && Tiles(64) * parts < most;
  }
};

// The parts of split sums in the workspace, [parts, count, m, n].
struct TileParts {
  float* sums;
  int m;
  int n;

  __device__ void Write(int64_t product, int i, int j, const float (&values)[4]) const {
    if (i >= m) return;
    for (int c = 0; c < 4; ++c) {
      if (j + c < n) sums[(product * m + i) * n + j + c] = values[c];
    }
  }
};

struct TileGrid {
  FastDivide rows;
  FastDivide columns;
  FastDivide count;
  int depth;
  int k;
};

template <int kSide, typename A, typename B, typename Result>
__global__ __launch_bounds__(kTileThreads, 2) void TileProductKernel(TileGrid grid, A a, B b, Result result) {
  __shared__ TileMemory<kSide> memory;
  uint32_t rest = blockIdx.x;
  const int row = static_cast<int>(grid.rows.Split(&rest)) * kSide;
  const int column = static_cast<int>(grid.columns.Split(&rest)) * kSide;
  const auto product = static_cast<int>(rest);
  const auto batch = static_cast<int>(grid.count.Split(&rest));
  const int k = static_cast<int>(rest) * grid.depth;
  const int k_end = k + grid.depth < grid.k ? k + grid.depth : grid.k;
  TileSums<kSide> sums;
  MultiplyTiles<kSide>(memory, a.Of(batch), row, b.Of(batch), column, k, k_end, sums);
  LS_UNROLL
  for (int r = 0; r < TileShape<kSide>::kPerThread; ++r) {
    LS_UNROLL
    for (int c = 0; c < TileShape<kSide>::kPerThread; c += 4) {
      const float(&row_of_sums)[TileShape<kSide>::kPerThread] = sums.values[r];
      const float values[4] = {row_of_sums[c], row_of_sums[c + 1], row_of_sums[c + 2], row_of_sums[c + 3]};
      result.Write(product, row + sums.Row(r), column + sums.Column(c), values);
    }
  }
}

template <typename Result>
__global__ void AddPartsKernel(int64_t quads, FastDivide per_row, FastDivide rows, int n, int parts, int64_t part,
                               const float* sums, Result result) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t q = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; q < quads; q += stride) {
    auto rest = static_cast<uint32_t>(q);
    const int j = static_cast<int>(per_row.Split(&rest)) * 4;
    const float* from = sums + int64_t{rest} * n + j;
    const auto i = static_cast<int>(rows.Split(&rest));
    float values[4] = {};
    for (int p = 0; p < parts; ++p) {
      for (int c = 0; c < 4; ++c) values[c] += j + c < n ? from[p * part + c] : 0.0f;
    }
    result.Write(static_cast<int>(rest), i, j, values);
  }
}

// Queues the products. REQUIRES: plan.fits().
template <typename A, typename B, typename Result>
absl::Status LaunchProduct(StreamHandle stream, const TilePlan& plan, const A& a, const B& b, const Result& result,
                           std::byte* workspace) {
  if (plan.m * plan.n * plan.count == 0) return absl::OkStatus();
  const int64_t side = plan.large() ? 128 : 64;
  const TileGrid grid = {.rows = FastDivide((plan.m + side - 1) / side),
                         .columns = FastDivide((plan.n + side - 1) / side),
                         .count = FastDivide(plan.count),
                         .depth = static_cast<int>(plan.depth),
                         .k = static_cast<int>(plan.k)};
  const LaunchShape shape{.blocks = {static_cast<unsigned>(plan.Tiles(side) * plan.parts)}, .threads = {kTileThreads}};
  if (plan.large()) return Launch(stream, shape, &TileProductKernel<128, A, B, Result>, grid, a, b, result);
  if (plan.parts == 1) return Launch(stream, shape, &TileProductKernel<64, A, B, Result>, grid, a, b, result);
  const TileParts parts = {reinterpret_cast<float*>(workspace), static_cast<int>(plan.m), static_cast<int>(plan.n)};
  LS_RETURN_IF_ERROR(Launch(stream, shape, &TileProductKernel<64, A, B, TileParts>, grid, a, b, parts));
  const int64_t per_row = (plan.n + 3) / 4;
  const int64_t quads = plan.count * plan.m * per_row;
  return Launch(stream, {.blocks = {BlocksFor(quads)}, .threads = {kBlock}}, &AddPartsKernel<Result>, quads,
                FastDivide(per_row), FastDivide(plan.m), static_cast<int>(plan.n), static_cast<int>(plan.parts),
                plan.count * plan.m * plan.n, parts.sums, result);
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_TILE_LAUNCH_H_
