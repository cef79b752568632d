#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/movement/cpu_sizes.h"
#include "worker/kernels/picks.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr size_t kMostLoops = 8;
constexpr int64_t kTile = 32;

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

// `rows` rows, whose length is known beforehand.
template <typename T, int64_t kLength>
void CopyShort(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows) {
#pragma GCC ivdep
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < kLength; ++i) y[row * y_step + i] = x[row * x_step + i];
  }
}

// `rows` rows of `length` elements on one thread.
template <typename T>
void CopyRun(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows, int64_t length) {
  switch (length) {
    case 1:
      return CopyShort<T, 1>(x, x_step, y, y_step, rows);
    case 2:
      return CopyShort<T, 2>(x, x_step, y, y_step, rows);
    case 3:
      return CopyShort<T, 3>(x, x_step, y, y_step, rows);
    case 4:
      return CopyShort<T, 4>(x, x_step, y, y_step, rows);
    default:
      for (int64_t row = 0; row < rows; ++row) {
        std::memcpy(y + row * y_step, x + row * x_step, static_cast<size_t>(length) * sizeof(T));
      }
  }
}

// Calls body(from, from_step, to, to_step, rows) for runs of the iterations of `nest`, whose rows have `length`
// elements.
template <typename Body>
void ForRuns(const Nest& nest, int64_t length, const Body& body) {
  const Nest::Loop inner = nest.size == 0 ? Nest::Loop{1, 0, 0} : nest.loops[nest.size - 1];
  ParallelFor(nest.count(), GrainOf(length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end;) {
      const int64_t run = std::min(end - row, inner.count - row % inner.count);
      const auto [from, to] = nest.At(row);
      body(from, inner.from_step, to, inner.to_step, run);
      row += run;
    }
  });
}

// `rows` rows of `length` elements; few rows are split.
template <typename T>
void CopyRows(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows, int64_t length) {
  const int64_t parts = rows >= 8 ? 1 : std::max<int64_t>(1, length / kMovementGrain);
  ParallelFor(rows * parts, GrainOf(length / parts), [=](int64_t begin, int64_t end) {
    if (parts == 1) return CopyRun(x + begin * x_step, x_step, y + begin * y_step, y_step, end - begin, length);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / parts;
      const int64_t first = length * (i % parts) / parts;
      const int64_t last = length * (i % parts + 1) / parts;
      std::memcpy(y + row * y_step + first, x + row * x_step + first, static_cast<size_t>(last - first) * sizeof(T));
    }
  });
}

template <typename T>
void Concat(const HostCall& call) {
  const int64_t axis = call.attrs<ConcatAttributes>().axis;
  const AxisExtents whole(axis, call.out_shape(0));
  int64_t begin = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int64_t length = AxisExtents(axis, call.in_shape(i)).extent * whole.inner;
    CopyRows(call.in<T>(i), length, call.out<T>(0) + begin, whole.extent * whole.inner, whole.outer, length);
    begin += length;
  }
}

template <typename T>
void Split(const HostCall& call) {
  const auto& split = call.attrs<SplitAttributes>();
  const AxisExtents whole(split.axis, call.in_shape(0));
  const auto parts = static_cast<int64_t>(call.outputs.size());
  int64_t begin = 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const int64_t equal = (whole.extent + parts - 1) / parts * whole.inner;
    int64_t length = std::min(equal, whole.extent * whole.inner - begin);
    if (!split.split.empty()) length = split.split[i] * whole.inner;
    if (call.output_infos[i].present) {
      CopyRows(call.in<T>(0) + begin, whole.extent * whole.inner, call.out<T>(i), length, whole.outer, length);
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

template <typename T>
void Slice(const HostCall& call) {
  const SliceRows rows = *RowsOf(call.attrs<SliceAttributes>(), call.in_shape(0));
  const T* x = call.in<T>(0) + rows.offset;
  T* y = call.out<T>(0);
  ForRuns(rows.nest, rows.length, [&](int64_t from, int64_t from_step, int64_t to, int64_t to_step, int64_t run) {
    CopyRun(x + from, from_step, y + to, to_step, run, rows.length);
  });
}

template <typename T>
void Fill(T* y, int64_t count, T value) {
  ParallelFor(count, kMovementGrain, [=](int64_t begin, int64_t end) { std::fill(y + begin, y + end, value); });
}

template <typename T>
void SliceGrad(const HostCall& call) {
  Fill(call.out<T>(0), NumElements(call.out_shape(0)), T{0});
  const SliceRows rows = *RowsOf(call.attrs<SliceAttributes>(), call.out_shape(0));
  const T* dy = call.in<T>(0);
  T* dx = call.out<T>(0) + rows.offset;
  ForRuns(rows.nest, rows.length, [&](int64_t to, int64_t to_step, int64_t from, int64_t from_step, int64_t run) {
    CopyRun(dy + from, from_step, dx + to, to_step, run, rows.length);
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

// Rows of one value each that are too short for a call.
constexpr int64_t kShortest = 8;
template <typename T>
void FillShort(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows, int64_t length) {
  for (int64_t i = 0; i < length; ++i) {
#pragma GCC ivdep
    for (int64_t row = 0; row < rows; ++row) y[row * y_step + i] = x[row * x_step];
  }
}

template <typename T>
void Expand(const HostCall& call) {
  const ExpandRows rows = *RowsOf(call.in_shape(0), call.out_shape(0));
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  ForRuns(rows.nest, rows.length, [&](int64_t from, int64_t from_step, int64_t to, int64_t to_step, int64_t run) {
    if (!rows.fills) return CopyRun(x + from, from_step, y + to, to_step, run, rows.length);
    if (rows.length <= kShortest) return FillShort(x + from, from_step, y + to, to_step, run, rows.length);
    for (int64_t row = 0; row < run; ++row) std::fill_n(y + to + row * to_step, rows.length, x[from + row * from_step]);
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
template <typename T>
void TransposeBlock(const T* x, int64_t x_step, T* y, int64_t y_step) {
  T block[4][4];
  for (int64_t j = 0; j < 4; ++j) std::memcpy(block[j], x + j * x_step, sizeof(block[j]));
  for (int64_t i = 0; i < 4; ++i) {
    const T column[4] = {block[0][i], block[1][i], block[2][i], block[3][i]};
    std::memcpy(y + i * y_step, column, sizeof(column));
  }
}

// Rows of X that are pairs, one behind the other.
template <typename T>
void PairsApart(const T* x, T* y, int64_t y_step, int64_t height) {
  T* const second = y + y_step;
#pragma GCC ivdep
  for (int64_t j = 0; j < height; ++j) {
    y[j] = x[2 * j];
    second[j] = x[2 * j + 1];
  }
}

// Rows of Y that are pairs, one behind the other.
template <typename T>
void PairsTogether(const T* x, int64_t x_step, T* y, int64_t width) {
  const T* const second = x + x_step;
#pragma GCC ivdep
  for (int64_t i = 0; i < width; ++i) {
    y[2 * i] = x[i];
    y[2 * i + 1] = second[i];
  }
}

template <typename T>
void TransposeTile(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t width, int64_t height) {
  if (width == 2 && x_step == 2) return PairsApart(x, y, y_step, height);
  if (height == 2 && y_step == 2) return PairsTogether(x, x_step, y, width);
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

template <typename T>
void Transpose(const HostCall& call) {
  const Permutation p = *PermutationOf(call.attrs<TransposeAttributes>(), call.in_shape(0));
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  if (p.rows && p.nest.size == 0) {
    CopyRows(x, 0, y, 0, 1, p.width);
    return;
  }
  if (p.rows) {
    ForRuns(p.nest, p.width, [&](int64_t from, int64_t from_step, int64_t to, int64_t to_step, int64_t run) {
      CopyRun(x + from, from_step, y + to, to_step, run, p.width);
    });
    return;
  }
  // What is narrow has longer tiles, so that all have about as many elements.
  const int64_t tile_width = kTile * kTile / std::min(kTile, p.height);
  const int64_t tile_height = kTile * kTile / std::min(kTile, p.width);
  const int64_t across = (p.width + tile_width - 1) / tile_width;
  const int64_t down = (p.height + tile_height - 1) / tile_height;
  ParallelFor(p.nest.count() * across * down, GrainOf(kTile * kTile), [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const auto [from, to] = p.nest.At(tile / (across * down));
      const int64_t i = tile / down % across * tile_width;
      const int64_t j = tile % down * tile_height;
      TransposeTile(x + from + j * p.x_step + i, p.x_step, y + to + i * p.y_step + j, p.y_step,
                    std::min(tile_width, p.width - i), std::min(tile_height, p.height - j));
    }
  });
}

}  // namespace

OwnFunction OwnMovement(const KernelRequest& request) {
  const DType dtype = request.inputs[0].dtype;  // an output may be absent
  const Shape& x = request.inputs[0].shape;
  const Shape& y = request.outputs[0].shape;
  switch (request.node->op) {
    case OpType::kTranspose:
      if (!PermutationOf(AttributesOf<TransposeAttributes>(request), x)) return {.refusal = kManyDimensions};
      return {ForSize(dtype, []<typename T>() -> HostFunction { return &Transpose<T>; }), "own:transpose"};
    case OpType::kConcat:
      return {ForSize(dtype, []<typename T>() -> HostFunction { return &Concat<T>; }), "own:rows"};
    case OpType::kSplit:
      return {ForSize(dtype, []<typename T>() -> HostFunction { return &Split<T>; }), "own:rows"};
    case OpType::kSlice:
      if (!RowsOf(AttributesOf<SliceAttributes>(request), x)) return {.refusal = kManyDimensions};
      return {ForSize(dtype, []<typename T>() -> HostFunction { return &Slice<T>; }), "own:rows"};
    case OpType::kSliceGrad:
      if (!RowsOf(AttributesOf<SliceAttributes>(request), y)) return {.refusal = kManyDimensions};
      return {ForSize(dtype, []<typename T>() -> HostFunction { return &SliceGrad<T>; }), "own:rows"};
    case OpType::kExpand:
      if (!RowsOf(x, y)) return {.refusal = kManyDimensions};
      return {ForSize(dtype, []<typename T>() -> HostFunction { return &Expand<T>; }), "own:rows"};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
