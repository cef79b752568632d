// Ops that compare the elements of a line along an axis, and running sums. Every line is computed by itself.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lane_sum.h"
#include "worker/kernels/cpu/lines.h"
#include "worker/kernels/cpu/parallel.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr int64_t kGrain = 16384;    // elements
constexpr int64_t kBlock = 64;       // neighbouring lines at a time
constexpr int64_t kShortLine = 128;  // a multiple of kLanes
// TopK's scratch is split by lines into so many parts, whatever the threads.
constexpr int64_t kParts = 16;

// --- ArgMax, ArgMin ---

// Whether a replaces b: a NaN is before every number.
template <bool kLargest, bool kLast>
bool Replaces(float a, float b) {
  const bool a_nan = a != a, b_nan = b != b;
  const bool better = kLargest ? a > b : a < b;
  const bool wins = better || (a_nan && !b_nan);
  return kLast ? wins || a == b || (a_nan && b_nan) : wins;
}

// Of a line whose elements are neighbours: the extreme one first, then where it stands.
template <bool kLargest, bool kLast>
int64_t ArgOfRow(const float* x, int64_t count) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = x[0];
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = Replaces<kLargest, false>(x[i + l], lanes[l]) ? x[i + l] : lanes[l];
  }
  for (; i < count; ++i) lanes[0] = Replaces<kLargest, false>(x[i], lanes[0]) ? x[i] : lanes[0];
  float best = lanes[0];
  for (const float lane : lanes) best = Replaces<kLargest, false>(lane, best) ? lane : best;
  const auto is_best = [best](float value) { return value == best || (value != value && best != best); };
  if (kLast) {
    for (int64_t at = count; at-- > 0;) {
      if (is_best(x[at])) return at;
    }
  }
  int64_t at = 0;
  while (!is_best(x[at])) ++at;
  return at;
}

template <bool kLargest, bool kLast>
void ArgOf(const HostCall& call) {
  const AxisExtents e(call.attrs<ArgAttributes>().axis, call.in_shape(0));
  ForLines(e, kBlock, [&](int64_t base, int64_t line, int64_t count) {
    const float* x = call.in<float>(0) + base;
    int64_t* y = call.out<int64_t>(0) + line;
    if (e.inner == 1) {
      *y = ArgOfRow<kLargest, kLast>(x, e.extent);
      return;
    }
    float best[kBlock];
    int64_t at[kBlock] = {};
    std::copy_n(x, count, best);
    for (int64_t i = 1; i < e.extent; ++i) {
      const float* row = x + i * e.inner;
      for (int64_t k = 0; k < count; ++k) {
        const bool replaces = Replaces<kLargest, kLast>(row[k], best[k]);
        best[k] = replaces ? row[k] : best[k];
        at[k] = replaces ? i : at[k];
      }
    }
    std::copy_n(at, count, y);
  });
}

void Arg(const HostCall& call) {
  const bool last = call.attrs<ArgAttributes>().select_last_index;
  if (call.op == OpType::kArgMax) return last ? ArgOf<true, true>(call) : ArgOf<true, false>(call);
  return last ? ArgOf<false, true>(call) : ArgOf<false, false>(call);
}

// --- TopK ---

// A number's place in TopK's order: the larger key stands in front. Zeros of both signs are equal, and a NaN is larger
// than every number.
template <bool kLargest>
int32_t KeyOf(float x) {
  const auto bits = std::bit_cast<int32_t>(x);
  const int32_t ordered = bits < 0 ? std::numeric_limits<int32_t>::min() - bits : bits;
  const int32_t key = x != x ? std::numeric_limits<int32_t>::max() : ordered;
  return kLargest ? key : ~key;
}

// ranks[i]: how many of the `count` elements stand before element i; of equal ones the first does. Both arrays go on to
// the next multiple of kLanes.
void Ranks(const int32_t* keys, int32_t* ranks, int64_t count) {
  for (int64_t block = 0; block < count; block += kLanes) {
    const int32_t* own = keys + block;
    const int64_t end = std::min(block + kLanes, count);
    int32_t before[kLanes] = {};
    for (int64_t j = 0; j < block; ++j) {
      for (int64_t l = 0; l < kLanes; ++l) before[l] += keys[j] >= own[l] ? 1 : 0;
    }
    for (int64_t j = block; j < end; ++j) {
      const int32_t key = keys[j];
      const auto at = static_cast<int32_t>(j - block);
      for (int32_t l = 0; l < kLanes; ++l) {
        before[l] += (key > own[l] ? 1 : 0) | ((key == own[l] ? 1 : 0) & (l > at ? 1 : 0));
      }
    }
    for (int64_t j = end; j < count; ++j) {
      for (int64_t l = 0; l < kLanes; ++l) before[l] += keys[j] > own[l] ? 1 : 0;
    }
    std::copy_n(before, kLanes, ranks + block);
  }
}

struct Line {
  const float* x;
  float* values;  // either is null where nobody asks
  int64_t* indices;
  int64_t extent;
  int64_t step;  // from an element to the next

  void Write(int64_t rank, int64_t index) const {
    if (values != nullptr) values[rank * step] = x[index * step];
    if (indices != nullptr) indices[rank * step] = index;
  }
};

template <bool kLargest>
void TopOfShort(const Line& line, int64_t k) {
  int32_t keys[kShortLine] = {};
  int32_t ranks[kShortLine];
  for (int64_t i = 0; i < line.extent; ++i) keys[i] = KeyOf<kLargest>(line.x[i * line.step]);
  Ranks(keys, ranks, line.extent);
  for (int64_t i = 0; i < line.extent; ++i) {
    if (ranks[i] < k) line.Write(ranks[i], i);
  }
}

struct Greater {
  bool operator()(uint64_t a, uint64_t b) const { return a > b; }
};

// By keys that hold the index in their lower half, so that no two are equal.
template <bool kLargest>
void TopOfLong(const Line& line, int64_t k, uint64_t* keys) {
  for (int64_t i = 0; i < line.extent; ++i) {
    const auto key = static_cast<uint32_t>(KeyOf<kLargest>(line.x[i * line.step])) ^ 0x80000000u;
    keys[i] = uint64_t{key} << 32 | (0xffffffffu - static_cast<uint32_t>(i));
  }
  if (k < line.extent) std::nth_element(keys, keys + k, keys + line.extent, Greater());
  std::sort(keys, keys + k, Greater());
  for (int64_t rank = 0; rank < k; ++rank) {
    line.Write(rank, int64_t{0xffffffffu - static_cast<uint32_t>(keys[rank])});
  }
}

template <bool kLargest>
void Top(const HostCall& call) {
  const auto& top = call.attrs<TopKAttributes>();
  const AxisExtents e(top.axis, call.in_shape(0));
  const int64_t lines = e.outer * e.inner;
  ParallelFor(kParts, std::max<int64_t>(1, kParts * kGrain / std::max<int64_t>(1, 4 * lines * e.extent)),
              [&](int64_t begin, int64_t end) {
                auto* keys = reinterpret_cast<uint64_t*>(call.workspace) + begin * e.extent;
                for (int64_t i = lines * begin / kParts; i < lines * end / kParts; ++i) {
                  const int64_t to = i / e.inner * top.k * e.inner + i % e.inner;
                  float* values = call.out<float>(0);
                  int64_t* indices = call.out<int64_t>(1);
                  const Line line{call.in<float>(0) + e.base(i), values == nullptr ? nullptr : values + to,
                                  indices == nullptr ? nullptr : indices + to, e.extent, e.inner};
                  e.extent <= kShortLine ? TopOfShort<kLargest>(line, top.k) : TopOfLong<kLargest>(line, top.k, keys);
                }
              });
}

void TopK(const HostCall& call) { call.attrs<TopKAttributes>().largest ? Top<true>(call) : Top<false>(call); }

// --- CumSum ---

// Sums of neighbouring lines side by side, each in the order of its elements.
template <typename T, typename Sum>
void RunningSums(const T* x, T* y, int64_t extent, int64_t step, bool exclusive, int64_t count, int64_t line_step) {
  Sum totals[kBlock] = {};
  for (int64_t i = 0; i < extent; ++i, x += step, y += step) {
    for (int64_t k = 0; k < count; ++k) {
      const Sum before = totals[k];
      totals[k] = before + static_cast<Sum>(x[k * line_step]);
      y[k * line_step] = static_cast<T>(exclusive ? before : totals[k]);
    }
  }
}

template <typename T>
void CumSum(const HostCall& call) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
  constexpr int64_t kRows = 8;  // lines whose elements are neighbours: additions of one would wait for each other
  const auto& sum = call.attrs<CumSumAttributes>();
  const AxisExtents e(sum.axis, call.in_shape(0));
  const int64_t start = sum.reverse ? (e.extent - 1) * e.inner : 0;
  const int64_t step = sum.reverse ? -e.inner : e.inner;
  if (e.inner > 1) {
    ForLines(e, kBlock, [&](int64_t base, int64_t, int64_t count) {
      RunningSums<T, Sum>(call.in<T>(0) + base + start, call.out<T>(0) + base + start, e.extent, step, sum.exclusive,
                          count, 1);
    });
    return;
  }
  ParallelFor((e.outer + kRows - 1) / kRows, GrainOf(kRows * e.extent), [&](int64_t begin, int64_t end) {
    for (int64_t rows = begin; rows < end; ++rows) {
      const int64_t base = rows * kRows * e.extent + start;
      RunningSums<T, Sum>(call.in<T>(0) + base, call.out<T>(0) + base, e.extent, step, sum.exclusive,
                          std::min(kRows, e.outer - rows * kRows), e.extent);
    }
  });
}

}  // namespace

OwnFunction OwnRanking(const KernelRequest& request) {
  const DType dtype = request.inputs[0].dtype;
  switch (request.node->op) {
    case OpType::kArgMax:
    case OpType::kArgMin:
      if (dtype != DType::kF32) return {.refusal = kOtherType};
      return {&Arg, "own:arg"};
    case OpType::kTopK: {
      const int64_t extent = AxisExtents(AttributesOf<TopKAttributes>(request).axis, request.inputs[0].shape).extent;
      if (dtype != DType::kF32) return {.refusal = kOtherType};
      if (extent > std::numeric_limits<int32_t>::max()) return {.refusal = "serves axes of less than 2^31 elements"};
      const int64_t keys = extent > kShortLine ? kParts * extent : 0;
      return {.function = &TopK, .name = "own:top_k", .workspace_bytes = static_cast<size_t>(keys) * sizeof(uint64_t)};
    }
    case OpType::kCumSum:
      if (dtype == DType::kF32) return {&CumSum<float>, "own:running_sum"};
      if (dtype == DType::kI64) return {&CumSum<int64_t>, "own:running_sum"};
      if (dtype == DType::kI32) return {&CumSum<int32_t>, "own:running_sum"};
      return {.refusal = kOtherType};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
