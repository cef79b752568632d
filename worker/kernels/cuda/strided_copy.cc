#include "worker/kernels/cuda/strided_copy.h"

#include <algorithm>

#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/map.h"
#include "worker/kernels/cuda/rows.h"

namespace lockstep::device::cuda {
namespace {

using Loop = CopyLoops::Loop;
using Unit16 = Pack<uint32_t, 4>;

constexpr int kTile = 32;
constexpr int kTileRows = 8;
// Below that many elements along either side most of a tile would be empty.
constexpr int64_t kLeastTile = 8;

struct RowShape {
  int64_t rows = 1;
  int64_t width = 1;
  int64_t from_step = 1;
  int64_t to_step = 1;
  OuterDimensions<2> outer;
};

template <typename Unit>
__global__ void RowsKernel(RowShape shape, const Unit* x, Unit* y) {
  LS_FOR_ROWS(row, shape.rows) {
    int64_t offsets[2] = {};
    shape.outer.Find(row, offsets);
    LS_FOR_COLUMNS(column, shape.width) {
      y[offsets[1] + column * shape.to_step] = x[offsets[0] + column * shape.from_step];
    }
  }
}

// y[i * y_step + j] = x[j * x_step + i] for i below width and j below height, in each of the outer dimensions.
struct Tiles {
  int64_t width = 1;
  int64_t height = 1;
  int64_t x_step = 1;
  int64_t y_step = 1;
  int64_t count = 1;
  WideDivide across;
  WideDivide down;
  OuterDimensions<2> outer;
};

template <typename Unit>
__global__ void TilesKernel(Tiles shape, const Unit* x, Unit* y) {
  // A column more than there are, so that neither rows nor columns meet in one bank.
  __shared__ Unit tile[kTile][kTile + 1];
  const auto lane = static_cast<int64_t>(threadIdx.x);
  for (int64_t index = blockIdx.x; index < shape.count; index += gridDim.x) {
    int64_t row = index;
    const int64_t i0 = shape.across.Split(&row) * kTile;
    const int64_t j0 = shape.down.Split(&row) * kTile;
    int64_t offsets[2] = {};
    shape.outer.Find(row, offsets);
    for (int64_t j = threadIdx.y; j < kTile; j += kTileRows) {
      if (j0 + j < shape.height && i0 + lane < shape.width) {
        tile[j][lane] = x[offsets[0] + (j0 + j) * shape.x_step + i0 + lane];
      }
    }
    __syncthreads();
    for (int64_t i = threadIdx.y; i < kTile; i += kTileRows) {
      if (i0 + i < shape.width && j0 + lane < shape.height) {
        y[offsets[1] + (i0 + i) * shape.y_step + j0 + lane] = tile[lane][i];
      }
    }
    __syncthreads();
  }
}

template <typename Unit>
absl::Status CopyRows(StreamHandle stream, const std::vector<Loop>& loops, const std::byte* x, std::byte* y) {
  RowShape shape;
  if (!loops.empty()) {
    shape.width = loops[0].count;
    shape.from_step = loops[0].from_step;
    shape.to_step = loops[0].to_step;
  }
  for (size_t i = 1; i < loops.size(); ++i) {
    shape.rows *= loops[i].count;
    shape.outer.Add(loops[i].count, {loops[i].from_step, loops[i].to_step});
  }
  return Launch(stream, RowsShape(shape.rows, shape.width), &RowsKernel<Unit>, shape, reinterpret_cast<const Unit*>(x),
                reinterpret_cast<Unit*>(y));
}

// `own`: the loop that steps through x one by one; the first one does so in y.
template <typename Unit>
absl::Status CopyTiles(StreamHandle stream, const std::vector<Loop>& loops, size_t own, const std::byte* x,
                       std::byte* y) {
  Tiles shape;
  shape.height = loops[0].count;
  shape.x_step = loops[0].from_step;
  shape.width = loops[own].count;
  shape.y_step = loops[own].to_step;
  const int64_t across = (shape.width + kTile - 1) / kTile;
  const int64_t down = (shape.height + kTile - 1) / kTile;
  shape.across = WideDivide(across);
  shape.down = WideDivide(down);
  shape.count = across * down;
  for (size_t i = 1; i < loops.size(); ++i) {
    if (i == own) continue;
    shape.count *= loops[i].count;
    shape.outer.Add(loops[i].count, {loops[i].from_step, loops[i].to_step});
  }
  return Launch(stream, {.blocks = {BlocksFor(shape.count, 1, 4 * kMostBlocks)}, .threads = {kTile, kTileRows}},
                &TilesKernel<Unit>, shape, reinterpret_cast<const Unit*>(x), reinterpret_cast<Unit*>(y));
}

// Bytes that can be moved at once where rows have no gaps: what divides every place and length.
int64_t UnitBytes(const std::vector<Loop>& loops, int64_t size, const std::byte* x, const std::byte* y) {
  if (loops.empty() || loops[0].from_step != 1 || loops[0].to_step != 1) return size;
  uint64_t all = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y) |
                 static_cast<uint64_t>(loops[0].count * size) | 16;
  for (size_t i = 1; i < loops.size(); ++i) {
    all |= static_cast<uint64_t>(loops[i].from_step * size) | static_cast<uint64_t>(loops[i].to_step * size);
  }
  return static_cast<int64_t>(all & (~all + 1));
}

template <typename Unit>
absl::Status CopyUnits(StreamHandle stream, const std::vector<Loop>& loops, const std::byte* x, std::byte* y) {
  if (!loops.empty() && loops[0].to_step == 1 && loops[0].from_step != 1 && loops[0].count >= kLeastTile) {
    for (size_t i = 1; i < loops.size(); ++i) {
      if (loops[i].from_step == 1 && loops[i].count >= kLeastTile) return CopyTiles<Unit>(stream, loops, i, x, y);
    }
  }
  return CopyRows<Unit>(stream, loops, x, y);
}

}  // namespace

void CopyLoops::Add(int64_t count, int64_t from_step, int64_t to_step) {
  empty_ = empty_ || count == 0;
  if (count <= 1) return;
  if (!loops_.empty()) {
    Loop& last = loops_.back();
    if (from_step == last.from_step * last.count && to_step == last.to_step * last.count) {
      last.count *= count;
      return;
    }
  }
  loops_.push_back({count, from_step, to_step});
}

void CopyLoops::Swap() {
  for (Loop& loop : loops_) std::swap(loop.from_step, loop.to_step);
  std::swap(from, to);
}

bool CopyLoops::fits() const { return loops_.size() <= kMostOuter + 1; }

absl::Status StridedCopy(StreamHandle stream, const CopyLoops& copy, int size, const std::byte* x, std::byte* y) {
  if (copy.empty()) return absl::OkStatus();
  x += copy.from * size;
  y += copy.to * size;
  std::vector<Loop> loops = copy.loops();
  if (loops.empty() || (loops.size() == 1 && loops[0].from_step == 1 && loops[0].to_step == 1)) {
    if (x == y) return absl::OkStatus();
    return CopyOnDevice(stream, y, x, static_cast<size_t>((loops.empty() ? 1 : loops[0].count) * size));
  }
  const int64_t unit = UnitBytes(loops, size, x, y);
  const int64_t per_unit = unit / size;
  if (per_unit > 1) {
    loops[0].count /= per_unit;
    for (size_t i = 1; i < loops.size(); ++i) {
      loops[i].from_step /= per_unit;
      loops[i].to_step /= per_unit;
    }
  }
  switch (unit) {
    case 1:
      return CopyUnits<uint8_t>(stream, loops, x, y);
    case 2:
      return CopyUnits<uint16_t>(stream, loops, x, y);
    case 4:
      return CopyUnits<uint32_t>(stream, loops, x, y);
    case 8:
      return CopyUnits<uint64_t>(stream, loops, x, y);
    default:
      return CopyRows<Unit16>(stream, loops, x, y);
  }
}

}  // namespace lockstep::device::cuda
