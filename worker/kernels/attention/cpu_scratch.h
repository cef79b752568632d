// Helpers of the CPU attention kernels: the layout of a thread's scratch memory, packing of operands into it, and sums
// over rows of scores.
//
// Threading: immutable (free functions over the caller's scratch).
#ifndef LOCKSTEP_WORKER_KERNELS_ATTENTION_CPU_SCRATCH_H_
#define LOCKSTEP_WORKER_KERNELS_ATTENTION_CPU_SCRATCH_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common/math/math.h"
#include "worker/kernels/attention/attention.h"
#include "worker/kernels/attention/cpu_block_product.h"

namespace lockstep::device::cpu::LS_CODE {

inline constexpr int64_t kStrip = 32;  // queries processed at a time
inline constexpr int64_t kScoreLanes = 32;
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

[[gnu::always_inline]] constexpr int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The scratch of one thread: sizes and offsets in floats.
struct AttentionScratch {
  [[gnu::always_inline]] AttentionScratch(const AttentionShape& shape, bool backward)
      : keys(RoundUp(shape.keys, kPanel)),
        strip_row(keys + kColumnStep),  // avoids powers of two, whose rows would map to the same cache sets
        size(RoundUp(shape.q.size, kColumnStep)),
        value_size(RoundUp(shape.v.size, kColumnStep)) {
    const auto take = [this](int64_t floats) {
      const int64_t offset = total;
      total += RoundUp(floats, kColumnStep);
      return offset;
    };
    strip = take(kStrip * strip_row);
    keys_across = take(keys * size);
    q = take(kStrip * size);
    y = take(kStrip * value_size);
    if (!backward) {
      values = take(keys * value_size);
      return;
    }
    gradient_strip = take(kStrip * strip_row);
    keys_down = take(keys * size);
    values = take(keys * value_size);
    dk = take(keys * size);
    dv = take(keys * value_size);
    dq = take(kStrip * size);
    kept = take(keys);
  }

  int64_t keys;
  int64_t strip_row;
  int64_t size;
  int64_t value_size;
  int64_t strip = 0;
  int64_t gradient_strip = 0;
  int64_t keys_across = 0;
  int64_t keys_down = 0;
  int64_t values = 0;  // transposed (PackAcross) in the backward pass
  int64_t q = 0;
  int64_t y = 0;
  int64_t dk = 0;
  int64_t dv = 0;
  int64_t dq = 0;
  int64_t kept = 0;
  int64_t total = 0;
};

// e^x for x <= 0; 0 where the result would be denormal; NaN stays NaN. The algorithm of Exp (math.h) without the parts
// for positive arguments.
[[gnu::always_inline]] inline float ExpOfScore(float x) {
  using F = math_internal::Format<float>;
  const float low = x < F::kExpZero ? F::kExpZero : x;
  const float shifted = MultiplyAddOne(low, F::kLog2E, F::kRound);
  const float k = shifted - F::kRound;
  const float r = MultiplyAddOne(-k, F::kLn2Low, MultiplyAddOne(-k, F::kLn2High, low));
  float tail = MultiplyAddOne(1.0f / 5040.0f, r, 1.0f / 720.0f);
  tail = MultiplyAddOne(tail, r, 1.0f / 120.0f);
  tail = MultiplyAddOne(tail, r, 1.0f / 24.0f);
  tail = MultiplyAddOne(tail, r, 1.0f / 6.0f);
  tail = MultiplyAddOne(tail, r, 0.5f);
  const float power = MultiplyAddOne(r * r, tail, r) + 1.0f;
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(F::kRound) + F::kBias;
  const float result = power * std::bit_cast<float>(exponent << F::kMantissaBits);
  return x < F::kExpZero ? 0.0f : result;
}

[[gnu::always_inline]] inline void CopyRow(const float* from, int64_t size, float* to) {
  int64_t i = 0;
  for (; i + kVector <= size; i += kVector) StoreVector(to + i, LoadVector(from + i));
  for (; i < size; ++i) to[i] = from[i];
}

// Copies `count` rows of `size` elements and pads them with zeros to [rows, width].
static void PackRows(const float* from, int64_t stride, int64_t count, int64_t size, int64_t rows, int64_t width,
                     float* to) {
  for (int64_t r = 0; r < count; ++r) {
    CopyRow(from + r * stride, size, to + r * width);
    std::fill(to + r * width + size, to + (r + 1) * width, 0.0f);
  }
  std::fill(to + count * width, to + rows * width, 0.0f);
}

// Transposes a 4 x 4 block; the rows of `to` are kPanel apart.
static void TransposeFour(const float* from, int64_t stride, float* to) {
  typedef float Four __attribute__((vector_size(16)));
  Four row[4];
  for (int64_t r = 0; r < 4; ++r) std::memcpy(&row[r], from + r * stride, sizeof(Four));
  const Four low01 = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
  const Four low23 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
  const Four high01 = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
  const Four high23 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  const Four columns[4] = {
      __builtin_shufflevector(low01, low23, 0, 1, 4, 5), __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
      __builtin_shufflevector(high01, high23, 0, 1, 4, 5), __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
  for (int64_t i = 0; i < 4; ++i) std::memcpy(to + i * kPanel, &columns[i], sizeof(Four));
}

// Transposes `count` rows, padded with zeros to `rows`, to [size, rows] in panels of kPanel columns.
static void PackAcross(const float* from, int64_t stride, int64_t count, int64_t size, int64_t rows, float* to) {
  for (int64_t panel = 0; panel < rows; panel += kPanel, to += size * kPanel) {
    const int64_t here = std::min(kPanel, count - panel);
    if (here < kPanel) std::fill(to, to + size * kPanel, 0.0f);
    for (int64_t r = 0; r < here;) {
      const float* row = from + (panel + r) * stride;
      const bool four = r + 4 <= here;
      int64_t i = 0;
      for (; four && i + 4 <= size; i += 4) TransposeFour(row + i, stride, to + i * kPanel + r);
      for (; i < size; ++i) {
        for (int64_t n = 0; n < (four ? 4 : 1); ++n) to[i * kPanel + r + n] = row[n * stride + i];
      }
      r += four ? 4 : 1;
    }
  }
}

static void Unpack(const float* from, int64_t width, int64_t count, int64_t size, float* to, int64_t stride) {
  for (int64_t r = 0; r < count; ++r) {
    CopyRow(from + r * width, size, to + r * stride);
  }
}

// The sum of value(i) for i in [0, count), in kScoreLanes float lanes that are then added as a tree. REQUIRES: count is
// a multiple of kScoreLanes.
template <typename Value>
static float FloatSum(int64_t count, const Value& value) {
  float lanes[kScoreLanes] = {};
  for (int64_t i = 0; i < count; i += kScoreLanes) {
    for (int64_t l = 0; l < kScoreLanes; ++l) lanes[l] += value(i + l);
  }
  for (int64_t half = kScoreLanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// The sum of a[i] * b[i], in the same lanes.
static float Dot(const float* a, const float* b, int64_t count) {
  float lanes[kScoreLanes] = {};
  int64_t i = 0;
  for (; i + kScoreLanes <= count; i += kScoreLanes) {
    for (int64_t l = 0; l < kScoreLanes; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  for (int64_t l = 0; i < count; ++i, ++l) lanes[l] += a[i] * b[i];
  return FloatSum(kScoreLanes, [&lanes](int64_t l) { return lanes[l]; });
}

static float LargestOf(const float* x, int64_t count) {
  float lanes[kScoreLanes];
  for (float& lane : lanes) lane = -kInfinity;
  for (int64_t i = 0; i < count; i += kScoreLanes) {
    for (int64_t l = 0; l < kScoreLanes; ++l) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
  }
  for (int64_t half = kScoreLanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) lanes[l] = lanes[l + half] > lanes[l] ? lanes[l + half] : lanes[l];
  }
  return lanes[0];
}

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_ATTENTION_CPU_SCRATCH_H_
