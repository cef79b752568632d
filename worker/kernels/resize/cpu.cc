#include <algorithm>
#include <cstdint>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/resize/resize.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr char kName[] = "own:resize";  // outlives every OwnFunction
constexpr int64_t kGrain = 16384;       // elements

// What an output column reads.
struct Column {
  int32_t from[2];
  float weight[2];
};

// A tensor as planes, of which the rows and the columns change in number, and nothing in front of them does.
struct Planes {
  bool fits = false;
  int64_t count = 1;
  ResizeAxis rows;
  ResizeAxis columns;
};

Planes PlanesOf(const ResizeAttributes& resize, const Shape& in, const Shape& out) {
  constexpr int64_t kMostColumns = int64_t{1} << 24;
  Planes planes;
  const size_t rank = in.size();
  for (size_t axis = 0; axis < rank; ++axis) {
    const ResizeAxis resized = ResizeAxisOf(resize, in, out, axis);
    if (axis + 1 == rank) {
      planes.columns = resized;
    } else if (axis + 2 == rank) {
      planes.rows = resized;
    } else {
      if (!resized.straight) return planes;
      planes.count *= in[axis];
    }
  }
  planes.fits = rank > 0 && in[rank - 1] < kMostColumns && out[rank - 1] < kMostColumns;
  return planes;
}

Column* FillColumns(const HostCall& call, const ResizeAxis& axis) {
  auto* columns = reinterpret_cast<Column*>(call.workspace);
  for (int64_t at = 0; at < axis.out; ++at) {
    const ResizeTaps taps = axis.At(at);
    columns[at] = {{static_cast<int32_t>(taps.index[0]), static_cast<int32_t>(taps.index[1])},
                   {static_cast<float>(taps.weight[0]), static_cast<float>(taps.weight[1])}};
  }
  return columns;
}

void Forward(const HostCall& call) {
  const Planes planes = PlanesOf(call.attrs<ResizeAttributes>(), call.in_shape(0), call.out_shape(0));
  const Column* columns = FillColumns(call, planes.columns);
  const int64_t width = planes.columns.out, in_width = planes.columns.in;
  const bool one = planes.columns.mode == ResizeMode::kNearest;
  ParallelFor(planes.count * planes.rows.out, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const ResizeTaps taps = planes.rows.At(row % planes.rows.out);
                  const float* x = call.in<float>(0) + row / planes.rows.out * planes.rows.in * in_width;
                  const float* above = x + taps.index[0] * in_width;
                  const float* below = x + taps.index[1] * in_width;
                  float* y = call.out<float>(0) + row * width;
                  if (one) {
                    for (int64_t c = 0; c < width; ++c) y[c] = above[columns[c].from[0]];
                    continue;
                  }
                  const auto high = static_cast<float>(taps.weight[0]);
                  const auto low = static_cast<float>(taps.weight[1]);
                  for (int64_t c = 0; c < width; ++c) {
                    const Column& at = columns[c];
                    const float left = high * above[at.from[0]] + low * below[at.from[0]];
                    const float right = high * above[at.from[1]] + low * below[at.from[1]];
                    y[c] = at.weight[0] * left + at.weight[1] * right;
                  }
                }
              });
}

// Gives what the columns of a row of dY hold to those of a row of dX.
void ScatterRow(const Column* columns, int64_t width, const float* dy, float weight, float* dx) {
  for (int64_t c = 0; c < width; ++c) {
    const Column& at = columns[c];
    dx[at.from[0]] += at.weight[0] * (weight * dy[c]);
    if (at.weight[1] != 0) dx[at.from[1]] += at.weight[1] * (weight * dy[c]);
  }
}

// Sums rows of dY for the two rows of dX that the latest one reads, before their columns are given out: rows of dX come
// in their order.
class RowSums {
 public:
  static constexpr int64_t kMostColumns = 2048;

  RowSums(const Column* columns, int64_t width, int64_t in_rows, int64_t in_width, float* dx)
      : columns_(columns), width_(width), in_rows_(in_rows), in_width_(in_width), dx_(dx) {
    std::fill_n(rows_[0], width, 0.0f);
    std::fill_n(rows_[1], width, 0.0f);
  }

  void Add(const ResizeTaps& taps, const float* dy) {
    while (first_ < taps.index[0]) Finish();
    for (int side = 0; side < 2; ++side) {
      if (taps.weight[side] == 0) continue;
      float* const to = rows_[(taps.index[side] - first_ + turn_) % 2];
      const auto weight = static_cast<float>(taps.weight[side]);
#pragma GCC ivdep
      for (int64_t c = 0; c < width_; ++c) to[c] += weight * dy[c];
    }
  }

  // Gives out the first of the two rows.
  void Finish() {
    float* const row = rows_[turn_ % 2];
    if (first_ < in_rows_) ScatterRow(columns_, width_, row, 1.0f, dx_ + first_ * in_width_);
    std::fill_n(row, width_, 0.0f);
    ++first_;
    ++turn_;
  }

 private:
  const Column* columns_;
  const int64_t width_;
  const int64_t in_rows_;
  const int64_t in_width_;
  float* const dx_;
  int64_t first_ = 0;  // of the two rows
  int64_t turn_ = 0;
  float rows_[2][kMostColumns];
};

void BackwardPlane(const Planes& planes, const Column* columns, const float* dy, float* dx) {
  const int64_t width = planes.columns.out, in_width = planes.columns.in;
  std::fill_n(dx, planes.rows.in * in_width, 0.0f);
  if (width <= RowSums::kMostColumns) {
    RowSums sums(columns, width, planes.rows.in, in_width, dx);
    for (int64_t row = 0; row < planes.rows.out; ++row) sums.Add(planes.rows.At(row), dy + row * width);
    sums.Finish();
    sums.Finish();
    return;
  }
  for (int64_t row = 0; row < planes.rows.out; ++row) {
    const ResizeTaps taps = planes.rows.At(row);
    for (int side = 0; side < 2; ++side) {
      if (taps.weight[side] == 0) continue;
      ScatterRow(columns, width, dy + row * width, static_cast<float>(taps.weight[side]),
                 dx + taps.index[side] * in_width);
    }
  }
}

// Each plane's sums run over its rows and columns in their order.
void Backward(const HostCall& call) {
  const Planes planes = PlanesOf(call.attrs<ResizeAttributes>(), call.out_shape(0), call.in_shape(0));
  const Column* columns = FillColumns(call, planes.columns);
  const int64_t from = planes.rows.out * planes.columns.out;
  const int64_t to = planes.rows.in * planes.columns.in;
  ParallelFor(planes.count, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, from)), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      BackwardPlane(planes, columns, call.in<float>(0) + plane * from, call.out<float>(0) + plane * to);
    }
  });
}

}  // namespace

OwnFunction OwnResize(const KernelRequest& request) {
  const bool backward = request.node->op == OpType::kResizeGrad;
  if (request.node->op != OpType::kResize && !backward) return {};
  const Shape& in = backward ? request.outputs[0].shape : request.inputs[0].shape;
  const Shape& out = backward ? request.inputs[0].shape : request.outputs[0].shape;
  if (!PlanesOf(AttributesOf<ResizeAttributes>(request), in, out).fits)
    return {.refusal = "resizes along the last two dimensions only, rows of less than 2^24 elements"};
  return {.function = backward ? &Backward : &Forward,
          .name = kName,
          .workspace_bytes = static_cast<size_t>(out.back()) * sizeof(Column)};
}

}  // namespace lockstep::device::cpu::LS_CODE
