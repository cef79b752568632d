// The parts that the CUDA kernels of attention and its gradient share: heads as factors of tile_product.h, the scores
// of 64 queries and 64 keys, and products of weights in shared memory with rows of a head. Nothing of size queries x
// keys is stored in device memory.
//
// Threading: CUDA's execution model.
#ifndef LOCKSTEP_WORKER_KERNELS_ATTENTION_CUDA_TILES_H_
#define LOCKSTEP_WORKER_KERNELS_ATTENTION_CUDA_TILES_H_

#include <cstdint>

#include "common/random/random.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/attention/attention.h"
#include "worker/kernels/cuda/matrix_factor.h"
#include "worker/kernels/cuda/tile_product.h"

namespace lockstep::device::cuda {

// Queries or keys per thread block.
inline constexpr int kAttentionSide = 64;
// The most columns that a block accumulates, in units of 64; wider rows take several blocks.
inline constexpr int kAttentionQuads = 2;

using AttentionMemory = TileMemory<kAttentionSide>;
using AttentionSums = TileSums<kAttentionSide>;
// Weights in shared memory: [index of the sum, in 4 steps of 16][row of the block].
using AttentionWeights = float[4][16][TileShape<kAttentionSide>::kPitch];

// The rows of one operand over all heads.
struct HeadRows {
  const float* data;
  AttentionRows rows;
  bool packed;  // every row is aligned for LoadFour

  // A head's rows, from column `column` on.
  template <bool kAlong>
  __device__ MatrixView<kAlong> View(int b, int h, int length, int column = 0) const {
    return {data + rows.At(b, h, 0) + column, rows.row, kAlong ? length : static_cast<int>(rows.size) - column, packed};
  }
};

struct AttentionNumbers {
  AttentionShape shape;
  HeadRows q, k, v;
  const float* mask;  // null: none
  AttentionMask strides;
  const int64_t* random;  // key of the pass (StreamOfPass); null: no dropout
  uint64_t stream;
  uint32_t threshold;
  float kept;  // the factor of weights that dropout keeps
  float scale;
  bool causal;

  __device__ int queries() const { return static_cast<int>(shape.queries); }
  __device__ int keys() const { return static_cast<int>(shape.keys); }
  __device__ bool Sees(int query, int key) const {
    return query < queries() && key < keys() && (!causal || key <= query);
  }
  // REQUIRES: Sees(query, key).
  __device__ float Score(float product, int b, int h, int query, int key) const {
    const float score = product * scale;
    if (mask == nullptr) return score;
    return score + mask[b * strides.batch + h * strides.head + query * strides.query + key * strides.key];
  }
  // Dropout's factors for the weights of four consecutive keys.
  __device__ void KeptFour(const RandomStream& numbers, int b, int h, int query, int key, float (&to)[4]) const {
    const uint64_t first = static_cast<uint64_t>(((b * shape.heads + h) * shape.queries + query) * shape.keys + key);
    std::array<uint32_t, 4> block = numbers.Block(first / 4);
    if (first % 4 == 0) {
      LS_UNROLL
      for (unsigned i = 0; i < 4; ++i) to[i] = block[i] >= threshold ? kept : 0.0f;
      return;
    }
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned at = static_cast<unsigned>(first % 4) + i;
      if (i > 0 && at == 4) block = numbers.Block(first / 4 + 1);
      to[i] = block[at % 4] >= threshold ? kept : 0.0f;
    }
  }
  __device__ RandomStream Numbers() const {
    if (random == nullptr) return RandomStream::For(0, stream);
    return RandomStream::For(static_cast<uint64_t>(random[0]), stream, static_cast<uint64_t>(random[1]),
                             static_cast<uint32_t>(random[2]), static_cast<uint32_t>(random[3]));
  }
};

// The work of a thread block: 64 rows of one head from `row` on, and columns from `column` on.
struct AttentionBlock {
  __device__ AttentionBlock(int length, int heads, int columns, int columns_per_block) {
    const unsigned blocks = static_cast<unsigned>(length + kAttentionSide - 1) / kAttentionSide;
    const unsigned slices = static_cast<unsigned>(columns + columns_per_block - 1) / columns_per_block;
    unsigned rest = blockIdx.x;
    column = static_cast<int>(rest % slices) * columns_per_block;
    rest /= slices;
    // Under a causal mask the last queries have the most work, so they are scheduled first.
    row = static_cast<int>(blocks - 1 - rest % blocks) * kAttentionSide;
    rest /= blocks;
    head = static_cast<int>(rest % static_cast<unsigned>(heads));
    sample = static_cast<int>(rest / static_cast<unsigned>(heads));
  }
  int row;
  int column;
  int head;
  int sample;
};

// out += transposed weights times rows [row, row_end) of a head; `view` begins at the block's column. All threads of
// the block call it after their writes to `weights`; `memory` and `weights` may be overwritten when it returns.
template <int kQuads>
__device__ void AddWeighted(AttentionMemory& memory, const AttentionWeights& weights, const MatrixView<false>& view,
                            int row, int row_end, AttentionSums (&out)[kQuads]) {
  static_assert(kQuads <= 2);
  using Loader = TileLoader<kAttentionSide, MatrixView<false>>;
  Loader first(view, 0), second(view, kQuads > 1 ? kAttentionSide : 0);
  first.Fetch(row, row_end);
  if (kQuads > 1) second.Fetch(row, row_end);
  first.Store(memory.a[0]);
  if (kQuads > 1) second.Store(memory.b[0]);
  __syncthreads();
  for (int step = 0; step < 4 && row < row_end; ++step, row += 16) {
    const bool more = step < 3 && row + 16 < row_end;
    if (more) {
      first.Fetch(row + 16, row_end);
      if (kQuads > 1) second.Fetch(row + 16, row_end);
    }
    MultiplySteps<kAttentionSide>(weights[step], memory.a[step % 2], out[0]);
    if (kQuads > 1) MultiplySteps<kAttentionSide>(weights[step], memory.b[step % 2], out[kQuads - 1]);
    if (more) {
      first.Store(memory.a[(step + 1) % 2]);
      if (kQuads > 1) second.Store(memory.b[(step + 1) % 2]);
    }
    __syncthreads();
  }
}

// Writes the block's rows of a head: `out` times factor(row within the block).
template <int kQuads, typename Factor>
__device__ void WriteRows(const AttentionSums (&out)[kQuads], const AttentionRows& rows, const AttentionBlock& block,
                          int length, float* to, bool packed, const Factor& factor) {
  LS_UNROLL
  for (int r = 0; r < 4; ++r) {
    const int row = AttentionSums::Row(r);
    if (block.row + row >= length) return;
    float* at = to + rows.At(block.sample, block.head, block.row + row);
    LS_UNROLL
    for (int quad = 0; quad < kQuads; ++quad) {
      const int column = block.column + quad * kAttentionSide + AttentionSums::Column(0);
      float values[4];
      LS_UNROLL
      for (int c = 0; c < 4; ++c) values[c] = out[quad].values[r][c] * factor(row);
      StoreFour(at + column, static_cast<int>(rows.size) - column, packed, values);
    }
  }
}

// Stores four weights of one row of a thread's tile in the layout of AddWeighted.
__device__ inline void StoreWeights(AttentionWeights& weights, int row, int column, const float (&values)[4]) {
  StoreFour(&weights[row / 16][row % 16][column], 4, true, values);
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_ATTENTION_CUDA_TILES_H_
