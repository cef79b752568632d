// Attention and its gradient, a block for 64 queries or 64 keys of a head at a time. Forward keeps a running maximum
// and sum per query (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al.,
// "FlashAttention", 2022). Backward makes the weights again from forward's statistics, once for each of dQ, dK and dV,
// so that every result is one thread's sum in index order.
#include <limits>
#include <optional>

#include "common/math/math.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/device/cuda/runtime/launch.h"
#include "worker/kernels/attention/cuda_tiles.h"
#include "worker/kernels/cuda/families.h"

namespace lockstep::device::cuda {
namespace {

constexpr int kSide = kAttentionSide;

__device__ float Infinity() { return std::numeric_limits<float>::infinity(); }

// The larger; NaN where one is.
__device__ float Larger(float a, float b) { return a > b || a != a ? a : b; }

// What forward knows of the queries of a block so far.
struct RunningRows {
  float largest[kSide];
  float sum[kSide];
  float rescale[kSide];  // what earlier sums are multiplied with, the maximum having grown
};

// The scores of keys from `key` on become weights, unless dropped, relative to the largest score so far; four threads
// have a query. Barriers stand on both sides.
__device__ void OnlineSoftmax(const AttentionNumbers& a, const RandomStream& numbers, const AttentionBlock& block,
                              int key, AttentionWeights& weights, RunningRows& rows) {
  const int row = static_cast<int>(threadIdx.x) / 4;
  const int part = static_cast<int>(threadIdx.x) % 4;
  float largest = -Infinity();
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 4; ++i) largest = Larger(weights[step][4 * part + i][row], largest);
  }
  largest = Larger(__shfl_xor_sync(kFullMask, largest, 1), largest);
  largest = Larger(__shfl_xor_sync(kFullMask, largest, 2), largest);
  const float before = rows.largest[row];
  largest = Larger(before, largest);
  // Where nothing was seen yet, every weight is zero.
  const float base = largest == -Infinity() ? 0.0f : largest;
  float sum = 0;
  for (int step = 0; step < 4; ++step) {
    float kept[4] = {1, 1, 1, 1};
    if (a.random != nullptr) {
      a.KeptFour(numbers, block.sample, block.head, block.row + row, key + 16 * step + 4 * part, kept);
    }
    for (int i = 0; i < 4; ++i) {
      float& weight = weights[step][4 * part + i][row];
      const float value = Exp(weight - base);
      sum += value;
      weight = value * kept[i];
    }
  }
  sum += __shfl_xor_sync(kFullMask, sum, 1);
  sum += __shfl_xor_sync(kFullMask, sum, 2);
  __syncwarp();  // all four have read the row's largest
  if (part == 0) {
    const float rescale = Exp(before - base);
    rows.largest[row] = largest;
    rows.sum[row] = rows.sum[row] * rescale + sum;
    rows.rescale[row] = rescale;
  }
}

template <int kQuads>
__global__ __launch_bounds__(kTileThreads, 2) void AttentionKernel(AttentionNumbers a, float* y, bool y_packed,
                                                                   float* statistics) {
  __shared__ AttentionMemory memory;
  alignas(16) __shared__ AttentionWeights weights;
  __shared__ RunningRows rows;
  const AttentionShape& s = a.shape;
  const AttentionBlock block(a.queries(), static_cast<int>(s.heads), static_cast<int>(s.v.size), kQuads * kSide);
  const int key_head = block.head / static_cast<int>(s.heads / s.key_heads);
  const auto q = a.q.View<true>(block.sample, block.head, a.queries());
  const auto k = a.k.View<true>(block.sample, key_head, a.keys());
  const auto v = a.v.View<false>(block.sample, key_head, a.keys(), block.column);
  const RandomStream numbers = a.Numbers();
  if (threadIdx.x < kSide) {
    rows.largest[threadIdx.x] = -Infinity();
    rows.sum[threadIdx.x] = 0;
  }
  const int end = a.causal && block.row + kSide < a.keys() ? block.row + kSide : a.keys();
  AttentionSums out[kQuads];
  for (int key = 0; key < end; key += kSide) {
    AttentionSums scores;
    MultiplyTiles<kSide>(memory, k, key, q, block.row, 0, static_cast<int>(s.q.size), scores);
    LS_UNROLL
    for (int r = 0; r < 4; ++r) {
      float values[4];
      LS_UNROLL
      for (int c = 0; c < 4; ++c) {
        const int own_key = key + AttentionSums::Row(r), query = block.row + AttentionSums::Column(c);
        values[c] = a.Sees(query, own_key) ? a.Score(scores.values[r][c], block.sample, block.head, query, own_key)
                                           : -Infinity();
      }
      StoreWeights(weights, AttentionSums::Row(r), AttentionSums::Column(0), values);
    }
    __syncthreads();
    OnlineSoftmax(a, numbers, block, key, weights, rows);
    __syncthreads();
    LS_UNROLL
    for (int r = 0; r < 4; ++r) {
      const float rescale = rows.rescale[AttentionSums::Row(r)];
      LS_UNROLL
      for (int quad = 0; quad < kQuads; ++quad) {
        LS_UNROLL
        for (int c = 0; c < 4; ++c) out[quad].values[r][c] *= rescale;
      }
    }
    AddWeighted(memory, weights, v, key, end, out);
  }
  WriteRows(out, s.y, block, a.queries(), y, y_packed, [&](int row) { return 1.0f / rows.sum[row]; });
  const int query = block.row + static_cast<int>(threadIdx.x);
  if (statistics == nullptr || block.column > 0 || threadIdx.x >= kSide || query >= a.queries()) return;
  float* to = statistics + ((block.sample * s.heads + block.head) * s.queries + query) * 2;
  to[0] = rows.largest[threadIdx.x];
  to[1] = 1.0f / rows.sum[threadIdx.x];
}

// What backward needs beside forward's operands.
struct GradientNumbers {
  HeadRows dy;
  const float* statistics;
  float* dots;  // of dY and Y, by query
};

// A warp for each query.
__global__ void DotKernel(AttentionNumbers a, GradientNumbers g, const float* y) {
  const AttentionShape& s = a.shape;
  const int64_t row = int64_t{blockIdx.x} * (kBlock / kWarp) + static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t count = s.batch * s.heads * s.queries;
  float sum = 0;
  if (row < count) {
    const int64_t at = s.y.At(row / s.queries / s.heads, row / s.queries % s.heads, row % s.queries);
    for (int64_t i = lane; i < s.y.size; i += kWarp) sum = fmaf(g.dy.data[at + i], y[at + i], sum);
  }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(kFullMask, sum, distance);
  if (lane == 0 && row < count) g.dots[row] = sum;
}

enum class Wanted { kQ, kK, kV };

// The weights with which rows enter a gradient, for a tile whose rows are from `row` on and whose columns are the
// block's: softmax and dropout for dV, the gradient of the scores for the others. Rows are keys for dQ, else queries.
template <Wanted kWanted>
__device__ void GradientWeights(const AttentionNumbers& a, const GradientNumbers& g, const RandomStream& numbers,
                                const AttentionBlock& block, int head, int row, const AttentionSums& scores,
                                const AttentionSums& weight_gradients, AttentionWeights& weights) {
  constexpr bool kRowsAreKeys = kWanted == Wanted::kQ;
  float kept[4][4];  // by query, then key
  const int first_row = row + AttentionSums::Row(0), first_column = block.row + AttentionSums::Column(0);
  const int first_key = kRowsAreKeys ? first_row : first_column;
  const int first_query = kRowsAreKeys ? first_column : first_row;
  LS_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (a.random != nullptr) {
      a.KeptFour(numbers, block.sample, head, first_query + i, first_key, kept[i]);
    } else {
      for (int j = 0; j < 4; ++j) kept[i][j] = 1;
    }
  }
  LS_UNROLL
  for (int r = 0; r < 4; ++r) {
    float values[4];
    LS_UNROLL
    for (int c = 0; c < 4; ++c) {
      const int query = first_query + (kRowsAreKeys ? c : r), key = first_key + (kRowsAreKeys ? r : c);
      values[c] = 0;
      if (!a.Sees(query, key)) continue;
      const int64_t of_query = (block.sample * a.shape.heads + head) * a.shape.queries + query;
      const float score = a.Score(scores.values[r][c], block.sample, head, query, key);
      const float weight = Exp(score - g.statistics[2 * of_query]) * g.statistics[2 * of_query + 1];
      const float keep = kRowsAreKeys ? kept[c][r] : kept[r][c];
      values[c] = kWanted == Wanted::kV ? weight * keep
                                        : weight * (weight_gradients.values[r][c] * keep - g.dots[of_query]) * a.scale;
    }
    StoreWeights(weights, AttentionSums::Row(r), AttentionSums::Column(0), values);
  }
}

// One of dQ, dK and dV. The rows that enter a gradient of keys or values are those of the queries of all heads that
// share the key head, head by head.
template <Wanted kWanted, int kQuads>
__global__ __launch_bounds__(kTileThreads, 2) void AttentionGradKernel(AttentionNumbers a, GradientNumbers g,
                                                                       HeadRows gradient, float* to) {
  __shared__ AttentionMemory memory;
  alignas(16) __shared__ AttentionWeights weights;
  constexpr bool kOfQueries = kWanted == Wanted::kQ;
  const AttentionShape& s = a.shape;
  const auto group = static_cast<int>(s.heads / s.key_heads);
  const int length = kOfQueries ? a.queries() : a.keys();
  const AttentionBlock block(length, static_cast<int>(kOfQueries ? s.heads : s.key_heads),
                             static_cast<int>(gradient.rows.size), kQuads * kSide);
  const int key_head = kOfQueries ? block.head / group : block.head;
  const auto k = a.k.View<true>(block.sample, key_head, a.keys());
  const auto v = a.v.View<true>(block.sample, key_head, a.keys());
  const RandomStream numbers = a.Numbers();
  // Keys that some query of the block sees, or queries that see some key of the block.
  const int begin = !kOfQueries && a.causal ? block.row : 0;
  const int others = kOfQueries ? a.keys() : a.queries();
  const int end = kOfQueries && a.causal && block.row + kSide < others ? block.row + kSide : others;
  AttentionSums out[kQuads];
  for (int i = 0; i < (kOfQueries ? 1 : group); ++i) {
    const int head = kOfQueries ? block.head : block.head * group + i;
    const auto q = a.q.View<true>(block.sample, head, a.queries());
    const auto dy = g.dy.View<true>(block.sample, head, a.queries());
    const HeadRows& entering = kOfQueries ? a.k : kWanted == Wanted::kK ? a.q : g.dy;
    const auto rows = entering.View<false>(block.sample, kOfQueries ? key_head : head, others, block.column);
    for (int row = begin; row < end; row += kSide) {
      AttentionSums scores, weight_gradients;
      MultiplyTiles<kSide>(memory, kOfQueries ? k : q, row, kOfQueries ? q : k, block.row, 0,
                           static_cast<int>(s.q.size), scores);
      if (kWanted != Wanted::kV) {
        MultiplyTiles<kSide>(memory, kOfQueries ? v : dy, row, kOfQueries ? dy : v, block.row, 0,
                             static_cast<int>(s.v.size), weight_gradients);
      }
      GradientWeights<kWanted>(a, g, numbers, block, head, row, scores, weight_gradients, weights);
      AddWeighted(memory, weights, rows, row, end, out);
    }
  }
  WriteRows(out, gradient.rows, block, length, to, gradient.packed, [](int) { return 1.0f; });
}

HeadRows RowsOf(const float* data, const AttentionRows& rows) {
  bool packed = IsPackable(data);
  for (const int64_t stride : {rows.offset, rows.batch, rows.head, rows.row}) packed = packed && stride % kPack == 0;
  return {data, rows, packed};
}

// `q` is the index of Q among the inputs, `mask` that of the mask.
AttentionNumbers NumbersOf(const DeviceCall& call, size_t q, size_t mask) {
  const auto& attributes = call.attrs<AttentionAttributes>();
  const bool packed = attributes.packed_heads > 0;
  const AttentionShape shape(attributes, call.in_shape(q), call.in_shape(q + 1), call.in_shape(q + 2));
  AttentionNumbers numbers = {
      .shape = shape,
      .q = RowsOf(call.in<float>(q), shape.q),
      .k = RowsOf(call.in<float>(packed ? q : q + 1), shape.k),
      .v = RowsOf(call.in<float>(packed ? q : q + 2), shape.v),
      .mask = call.in<float>(mask),
      .strides = {},
      .random = attributes.ratio > 0 ? call.in<int64_t>(mask + 1) : nullptr,
      .stream = attributes.stream,
      .threshold = DropThreshold(attributes.ratio),
      .kept = static_cast<float>(1.0 / (1.0 - attributes.ratio)),
      .scale = static_cast<float>(attributes.scale),
      .causal = attributes.causal,
  };
  if (numbers.mask != nullptr) numbers.strides = AttentionShape::MaskOf(call.in_shape(mask));
  return numbers;
}

int64_t SlicesOf(int64_t columns) { return (columns + kAttentionQuads * kSide - 1) / (kAttentionQuads * kSide); }

LaunchShape ShapeFor(const AttentionShape& s, int64_t length, int64_t heads, int64_t columns) {
  const int64_t blocks = (length + kSide - 1) / kSide * heads * s.batch * SlicesOf(columns);
  return {.blocks = {static_cast<unsigned>(blocks)}, .threads = {kTileThreads}};
}

absl::Status AttentionOnDevice(const DeviceCall& call, StreamHandle stream) {
  const AttentionNumbers a = NumbersOf(call, 0, 3);
  const LaunchShape shape = ShapeFor(a.shape, a.shape.queries, a.shape.heads, a.shape.v.size);
  float* y = call.out<float>(0);
  return Launch(stream, shape, a.shape.v.size <= kSide ? &AttentionKernel<1> : &AttentionKernel<2>, a, y,
                RowsOf(y, a.shape.y).packed, call.out<float>(1));
}

template <Wanted kWanted>
absl::Status Gradient(const AttentionNumbers& a, const GradientNumbers& g, const AttentionRows& rows, float* to,
                      StreamHandle stream) {
  const AttentionShape& s = a.shape;
  const bool of_queries = kWanted == Wanted::kQ;
  return Launch(stream, ShapeFor(s, of_queries ? s.queries : s.keys, of_queries ? s.heads : s.key_heads, rows.size),
                rows.size <= kSide ? &AttentionGradKernel<kWanted, 1> : &AttentionGradKernel<kWanted, 2>, a, g,
                RowsOf(to, rows), to);
}

absl::Status AttentionGrad(const DeviceCall& call, StreamHandle stream) {
  const AttentionNumbers a = NumbersOf(call, 1, 6);
  const AttentionShape& s = a.shape;
  const bool packed = call.attrs<AttentionAttributes>().packed_heads > 0;
  const GradientNumbers g = {RowsOf(call.in<float>(0), s.y), call.in<float>(5),
                             reinterpret_cast<float*>(call.workspace)};
  const int64_t queries = s.batch * s.heads * s.queries;
  LS_RETURN_IF_ERROR(Launch(stream,
                            {.blocks = {BlocksFor(queries, kBlock / kWarp, FastDivide::kMost)}, .threads = {kBlock}},
                            &DotKernel, a, g, call.in<float>(4)));
  LS_RETURN_IF_ERROR(Gradient<Wanted::kQ>(a, g, s.q, call.out<float>(0), stream));
  LS_RETURN_IF_ERROR(Gradient<Wanted::kK>(a, g, s.k, call.out<float>(packed ? 0 : 1), stream));
  return Gradient<Wanted::kV>(a, g, s.v, call.out<float>(packed ? 0 : 2), stream);
}

}  // namespace

OwnFunction OwnAttention(const KernelRequest& request) {
  const bool backward = request.node->op == OpType::kAttentionGrad;
  if (request.node->op != OpType::kAttention && !backward) return {};
  if (request.outputs[0].dtype != DType::kF32) return {.refusal = kOtherType};
  const size_t q = backward ? 1 : 0;
  const AttentionShape s(AttributesOf<AttentionAttributes>(request), request.inputs[q].shape,
                         request.inputs[q + 1].shape, request.inputs[q + 2].shape);
  const int64_t work = s.batch * s.heads * s.queries * s.keys * s.q.size * s.v.size;
  const int64_t blocks = s.batch * s.heads * (s.queries + s.keys) * SlicesOf(s.q.size + s.v.size);
  if (work == 0 || blocks >= FastDivide::kMost) return {.refusal = kTooLarge};
  if (!backward) return {&AttentionOnDevice, "tiles"};
  return {&AttentionGrad, "tiles", static_cast<size_t>(s.batch * s.heads * s.queries) * sizeof(float)};
}

}  // namespace lockstep::device::cuda
