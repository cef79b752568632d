#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/picks.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr int64_t kGrain = 16384;  // elements
constexpr size_t kMostLoops = 8;
constexpr int64_t kTile = 32;

int64_t GrainOf(int64_t elements) { return std::max<int64_t>(1, kGrain / elements); }

// Nested loops, the outermost first, over what is no row or tile: each steps through both tensors.
struct Nest {
  struct Loop {
    int64_t count;
    int64_t from_step;
    int64_t to_step;
  };
  std::array<Loop, kMostLoops> loops;
  size_t size = 0;

  void Add(Loop loop) { loops[size++] = loop; }
  int64_t count() const {
    int64_t product = 1;
    for (size_t i = 0; i < size; ++i) product *= loops[i].count;
    return product;
  }
  // The offsets of iteration `index`.
  std::pair<int64_t, int64_t> At(int64_t index) const {
    int64_t from = 0;
    int64_t to = 0;
    for (size_t i = size; i-- > 0;) {
      const int64_t at = index % loops[i].count;
      index /= loops[i].count;
      from += at * loops[i].from_step;
      to += at * loops[i].to_step;
    }
    return {from, to};
  }
};

// `rows` rows of `length` elements; few rows are split.
void CopyRows(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t rows, int64_t length) {
  const int64_t parts = rows >= 8 ? 1 : std::max<int64_t>(1, length / kGrain);
  ParallelFor(rows * parts, GrainOf(length / parts), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / parts;
      const int64_t first = length * (i % parts) / parts;
      const int64_t last = length * (i % parts + 1) / parts;
      std::memcpy(y + row * y_step + first, x + row * x_step + first,
                  static_cast<size_t>(last - first) * sizeof(float));
    }
  });
}

void Concat(const HostCall& call) {
  const int64_t axis = call.attrs<ConcatAttributes>().axis;
  const AxisExtents whole(call.out_shape(0), axis);
  int64_t begin = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int64_t length = AxisExtents(call.in_shape(i), axis).extent * whole.inner;
    CopyRows(call.in<float>(i), length, call.out<float>(0) + begin, whole.extent * whole.inner, whole.outer, length);
    begin += length;
  }
}

void Split(const HostCall& call) {
  const auto& split = call.attrs<SplitAttributes>();
  const AxisExtents whole(call.in_shape(0), split.axis);
  const auto parts = static_cast<int64_t>(call.outputs.size());
  int64_t begin = 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const int64_t equal = (whole.extent + parts - 1) / parts * whole.inner;
    int64_t length = std::min(equal, whole.extent * whole.inner - begin);
    if (!split.split.empty()) length = split.split[i] * whole.inner;
    if (call.output_infos[i].present) {
      CopyRows(call.in<float>(0) + begin, whole.extent * whole.inner, call.out<float>(i), length, whole.outer, length);
    }
    begin += length;
  }
}

// A slice of a tensor as rows that lie together in both.
struct SliceRows {
  Nest nest;
  int64_t offset = 0;  // of the first row in the whole tensor
  int64_t length = 1;
};

std::optional<SliceRows> RowsOf(const SliceAttributes& slice, const Shape& whole) {
  const auto rank = static_cast<int64_t>(whole.size());
  SliceRows rows;
  std::array<Nest::Loop, kMostLoops> inner_first;
  size_t loops = 0;
  int64_t from = 1;
  int64_t to = 1;
  bool in_row = true;
  for (size_t i = whole.size(); i-- > 0;) {
    const SliceRange range = slice.RangeOf(static_cast<int64_t>(i), rank, whole[i]);
    rows.offset += range.start * from;
    if (in_row && (range.step == 1 || range.count == 1)) {
      rows.length *= range.count;
    } else {
      if (loops == kMostLoops) return std::nullopt;
      inner_first[loops++] = {range.count, range.count > 1 ? range.step * from : 0, to};
    }
    in_row = in_row && range.count == whole[i] && range.step == 1;
    from *= whole[i];
    to *= range.count;
  }
  while (loops > 0) rows.nest.Add(inner_first[--loops]);
  return rows;
}

void Slice(const HostCall& call) {
  const SliceRows rows = *RowsOf(call.attrs<SliceAttributes>(), call.in_shape(0));
  const float* x = call.in<float>(0) + rows.offset;
  float* y = call.out<float>(0);
  ParallelFor(rows.nest.count(), GrainOf(rows.length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto [from, to] = rows.nest.At(row);
      std::memcpy(y + to, x + from, static_cast<size_t>(rows.length) * sizeof(float));
    }
  });
}

void Fill(float* y, int64_t count, float value) {
  ParallelFor(count, kGrain, [=](int64_t begin, int64_t end) { std::fill(y + begin, y + end, value); });
}

void SliceGrad(const HostCall& call) {
  Fill(call.out<float>(0), NumElements(call.out_shape(0)), 0.0f);
  const SliceRows rows = *RowsOf(call.attrs<SliceAttributes>(), call.out_shape(0));
  const float* dy = call.in<float>(0);
  float* dx = call.out<float>(0) + rows.offset;
  ParallelFor(rows.nest.count(), GrainOf(rows.length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto [to, from] = rows.nest.At(row);
      std::memcpy(dx + to, dy + from, static_cast<size_t>(rows.length) * sizeof(float));
    }
  });
}

// A broadcast as rows of Y: `length` elements of X, or one that fills the row.
struct ExpandRows {
  Nest nest;
  int64_t length = 1;
  bool fills = false;
};

std::optional<ExpandRows> RowsOf(const Shape& x, const Shape& y) {
  ExpandRows rows;
  std::array<Nest::Loop, kMostLoops> inner_first;
  size_t loops = 0;
  int64_t from = 1;
  int64_t to = 1;
  for (size_t i = y.size(); i-- > 0;) {
    const size_t added = y.size() - x.size();
    const int64_t extent = i < added ? 1 : x[i - added];
    const bool repeats = extent == 1 && y[i] != 1;
    if (rows.length == 1) rows.fills = repeats;
    if (y[i] != 1 && loops == 0 && repeats == rows.fills) {
      rows.length *= y[i];
    } else if (y[i] != 1) {
      if (loops == kMostLoops) return std::nullopt;
      inner_first[loops++] = {y[i], repeats ? 0 : from, to};
    }
    from *= extent;
    to *= y[i];
  }
  while (loops > 0) rows.nest.Add(inner_first[--loops]);
  return rows;
}

void Expand(const HostCall& call) {
  const ExpandRows rows = *RowsOf(call.in_shape(0), call.out_shape(0));
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  ParallelFor(rows.nest.count(), GrainOf(rows.length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto [from, to] = rows.nest.At(row);
      if (rows.fills) std::fill_n(y + to, rows.length, x[from]);
      if (!rows.fills) std::memcpy(y + to, x + from, static_cast<size_t>(rows.length) * sizeof(float));
    }
  });
}

// A permutation as tiles of the axis that lies together in X and the axis that lies together in Y. They are the same
// axis where `rows`: then there is only a row to copy.
struct Permutation {
  Nest nest;
  bool rows = false;
  int64_t width = 1;   // the axis with step 1 in X
  int64_t height = 1;  // the axis with step 1 in Y
  int64_t x_step = 0;  // of the latter in X
  int64_t y_step = 0;  // of the former in Y
};

// Dimensions of 1 are left out, and neighbours that stay neighbours become one.
std::optional<Permutation> PermutationOf(const TransposeAttributes& transpose, const Shape& x) {
  const size_t rank = x.size();
  std::array<Nest::Loop, kMostLoops> axes;  // of Y, outermost first
  size_t size = 0;
  size_t last = rank;  // the axis of X that the last entry of `axes` ends with
  int64_t to = NumElements(x);
  for (size_t i = 0; i < rank; ++i) {
    const size_t source = transpose.Source(i, rank);
    if (x[source] == 1) continue;
    to /= x[source];
    const int64_t from = ProductOf(x, source + 1, rank);
    const bool continues = size > 0 && last < source && ProductOf(x, last + 1, source) == 1;
    if (!continues && size == kMostLoops) return std::nullopt;
    const int64_t before = continues ? axes[--size].count : 1;
    axes[size++] = {before * x[source], from, to};
    last = source;
  }
  Permutation made;
  for (size_t i = 0; i < size; ++i) {
    const bool in_x = axes[i].from_step == 1;
    const bool in_y = axes[i].to_step == 1;
    if (in_x) made.width = axes[i].count;
    if (in_x) made.y_step = axes[i].to_step;
    if (in_y && !in_x) made.height = axes[i].count;
    if (in_y && !in_x) made.x_step = axes[i].from_step;
    made.rows = made.rows || (in_x && in_y);
    if (!in_x && !in_y) made.nest.Add(axes[i]);
  }
  made.rows = made.rows || size == 0;
  return made;
}

// Four by four elements through registers: y[i * y_step + j] = x[j * x_step + i].
void TransposeBlock(const float* x, int64_t x_step, float* y, int64_t y_step) {
  float block[4][4];
  for (int64_t j = 0; j < 4; ++j) std::memcpy(block[j], x + j * x_step, sizeof(block[j]));
  for (int64_t i = 0; i < 4; ++i) {
    const float column[4] = {block[0][i], block[1][i], block[2][i], block[3][i]};
    std::memcpy(y + i * y_step, column, sizeof(column));
  }
}

void TransposeTile(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t width, int64_t height) {
  const int64_t whole_width = width / 4 * 4;
  const int64_t whole_height = height / 4 * 4;
  for (int64_t i = 0; i < whole_width; i += 4) {
    for (int64_t j = 0; j < whole_height; j += 4)
      TransposeBlock(x + j * x_step + i, x_step, y + i * y_step + j, y_step);
  }
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = i < whole_width ? whole_height : 0; j < height; ++j) y[i * y_step + j] = x[j * x_step + i];
  }
}

void Transpose(const HostCall& call) {
  const Permutation p = *PermutationOf(call.attrs<TransposeAttributes>(), call.in_shape(0));
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  if (p.rows && p.nest.size == 0) {
    CopyRows(x, 0, y, 0, 1, p.width);
    return;
  }
  if (p.rows) {
    ParallelFor(p.nest.count(), GrainOf(p.width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const auto [from, to] = p.nest.At(row);
        std::memcpy(y + to, x + from, static_cast<size_t>(p.width) * sizeof(float));
      }
    });
    return;
  }
  const int64_t across = (p.width + kTile - 1) / kTile;
  const int64_t down = (p.height + kTile - 1) / kTile;
  ParallelFor(p.nest.count() * across * down, GrainOf(kTile * kTile), [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const auto [from, to] = p.nest.At(tile / (across * down));
      const int64_t i = tile / down % across * kTile;
      const int64_t j = tile % down * kTile;
      TransposeTile(x + from + j * p.x_step + i, p.x_step, y + to + i * p.y_step + j, p.y_step,
                    std::min(kTile, p.width - i), std::min(kTile, p.height - j));
    }
  });
}

void Gather(const HostCall& call) {
  const AxisExtents e(call.in_shape(0), call.attrs<GatherAttributes>().axis);
  const Indices indices(call, 1);
  const int64_t count = NumElements(call.in_shape(1));
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  ParallelFor(e.outer * count, GrainOf(e.inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t index = indices.at(row % count, e.extent);
      const float* from = x + (row / count * e.extent + index) * e.inner;
      if (index < 0) std::fill_n(y + row * e.inner, e.inner, std::numeric_limits<float>::quiet_NaN());
      if (index >= 0) std::memcpy(y + row * e.inner, from, static_cast<size_t>(e.inner) * sizeof(float));
    }
  });
}

// Every part of the columns adds all rows in index order, so that no bit depends on the parts.
void GatherGrad(const HostCall& call) {
  const AxisExtents e(call.out_shape(0), call.attrs<GatherAttributes>().axis);
  const Indices indices(call, 1);
  const int64_t count = NumElements(call.in_shape(1));
  const float* dy = call.in<float>(0);
  float* dx = call.out<float>(0);
  bool outside = false;
  for (int64_t i = 0; i < count; ++i) outside = outside || indices.at(i, e.extent) < 0;
  Fill(dx, NumElements(call.out_shape(0)), outside ? std::numeric_limits<float>::quiet_NaN() : 0.0f);
  if (outside) return;
  ParallelFor(e.inner, GrainOf(e.outer * count), [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < e.outer * count; ++row) {
      const int64_t index = indices.at(row % count, e.extent);
      const float* from = dy + row * e.inner;
      float* to = dx + (row / count * e.extent + index) * e.inner;
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    }
  });
}

}  // namespace

OwnFunction OwnMovement(const KernelRequest& request) {
  switch (request.node->op) {
    case OpType::kTranspose:
      if (!PermutationOf(AttributesOf<TransposeAttributes>(request), request.inputs[0].shape)) return {};
      return {&Transpose, "own:transpose"};
    case OpType::kConcat:
      return {&Concat, "own:rows"};
    case OpType::kSplit:
      return {&Split, "own:rows"};
    case OpType::kSlice:
      if (!RowsOf(AttributesOf<SliceAttributes>(request), request.inputs[0].shape)) return {};
      return {&Slice, "own:rows"};
    case OpType::kSliceGrad:
      if (!RowsOf(AttributesOf<SliceAttributes>(request), request.outputs[0].shape)) return {};
      return {&SliceGrad, "own:rows"};
    case OpType::kExpand:
      if (!RowsOf(request.inputs[0].shape, request.outputs[0].shape)) return {};
      return {&Expand, "own:rows"};
    case OpType::kGather:
      return {&Gather, "own:gather"};
    case OpType::kGatherGrad:
      return {&GatherGrad, "own:gather"};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
