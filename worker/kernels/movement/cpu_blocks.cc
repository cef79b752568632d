// DepthToSpace, SpaceToDepth and Tile: rows at a time.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/movement/cpu_sizes.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

// Where the elements of a row of the wide image lie in the deep one: column c of every block in a row of its own.
struct BlockRows {
  BlockRows(const BlockAttributes& blocks, const Shape& deep)
      : b(blocks.block_size), height(deep[2]), width(deep[3]), channels(deep[1] / (b * b)), rows(deep[0] * channels) {
    const int64_t area = height * width;
    const bool dcr = blocks.mode == BlockMode::kDcr;
    channel_step = dcr ? area : b * b * area;
    column_step = dcr ? channels * area : area;
  }
  // The first column's row, of row `row` of [N, C, H, b].
  int64_t Deep(int64_t row) const {
    const int64_t in_block = row % b, h = row / b % height, plane = row / b / height;
    return plane / channels * channels * b * b * height * width + plane % channels * channel_step +
           in_block * b * column_step + h * width;
  }

  int64_t b;
  int64_t height;
  int64_t width;
  int64_t channels;
  int64_t rows;  // planes of the wide image
  int64_t channel_step;
  int64_t column_step;
};

// One row. kBlock is the block's size where it is known beforehand, else 0.
template <typename T, int64_t kBlock>
void Spread(const T* deep, int64_t column_step, T* wide, int64_t width, int64_t b) {
  const int64_t size = kBlock == 0 ? b : kBlock;
#pragma GCC ivdep
  for (int64_t w = 0; w < width; ++w) {
    for (int64_t c = 0; c < size; ++c) wide[w * size + c] = deep[c * column_step + w];
  }
}

template <typename T, int64_t kBlock>
void Gather(const T* wide, T* deep, int64_t column_step, int64_t width, int64_t b) {
  const int64_t size = kBlock == 0 ? b : kBlock;
  for (int64_t c = 0; c < size; ++c) {
    T* to = deep + c * column_step;
    const T* from = wide + c;
#pragma GCC ivdep
    for (int64_t w = 0; w < width; ++w) to[w] = from[w * size];
  }
}

template <typename T>
void Blocks(const HostCall& call) {
  const bool to_space = call.op == OpType::kDepthToSpace;
  const BlockRows rows(call.attrs<BlockAttributes>(), to_space ? call.in_shape(0) : call.out_shape(0));
  const auto spread = rows.b == 2   ? Spread<T, 2>
                      : rows.b == 3 ? Spread<T, 3>
                      : rows.b == 4 ? Spread<T, 4>
                                    : Spread<T, 0>;
  const auto gather = rows.b == 2   ? Gather<T, 2>
                      : rows.b == 3 ? Gather<T, 3>
                      : rows.b == 4 ? Gather<T, 4>
                                    : Gather<T, 0>;
  const int64_t length = rows.b * rows.width;
  ParallelFor(rows.rows * rows.height * rows.b, GrainOf(length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (to_space) {
        spread(call.in<T>(0) + rows.Deep(row), rows.column_step, call.out<T>(0) + row * length, rows.width, rows.b);
      } else {
        gather(call.in<T>(0) + row * length, call.out<T>(0) + rows.Deep(row), rows.column_step, rows.width, rows.b);
      }
    }
  });
}

// The dimensions from `axis` on, repeated: `x` elements of X become `y` elements of Y.
struct Repeated {
  int64_t x;
  int64_t y;
};

// Writes Y's part of one index in front of `axis`, and returns how much of X and Y that is. Repeats of the whole are
// copies of what was written.
template <typename T>
Repeated RepeatFrom(const T* x, T* y, const Shape& shape, const std::vector<int64_t>& repeats, size_t axis) {
  if (axis == shape.size()) {
    *y = *x;
    return {1, 1};
  }
  Repeated done{0, 0};
  const bool row = std::all_of(repeats.begin() + static_cast<std::ptrdiff_t>(axis) + 1, repeats.end(),
                               [](int64_t repeat) { return repeat == 1; });
  if (row) {
    done.x = 1;
    for (size_t i = axis; i < shape.size(); ++i) done.x *= shape[i];
    done.y = done.x;
    std::memcpy(y, x, static_cast<size_t>(done.x) * sizeof(T));
  } else {
    for (int64_t i = 0; i < shape[axis]; ++i) {
      const Repeated part = RepeatFrom(x + done.x, y + done.y, shape, repeats, axis + 1);
      done.x += part.x;
      done.y += part.y;
    }
  }
  const int64_t once = done.y;
  for (int64_t i = 1; i < repeats[axis]; ++i, done.y += once) {
    if (once == 1) {
      y[i] = *y;
    } else {
      std::memcpy(y + i * once, y, static_cast<size_t>(once) * sizeof(T));
    }
  }
  return done;
}

template <typename T>
void Tile(const HostCall& call) {
  RepeatFrom(call.in<T>(0), call.out<T>(0), call.in_shape(0), call.attrs<TileAttributes>().repeats, 0);
}

}  // namespace

OwnFunction OwnBlocks(const KernelRequest& request) {
  const DType dtype = request.inputs[0].dtype;  // an output may be absent
  switch (request.node->op) {
    case OpType::kDepthToSpace:
    case OpType::kSpaceToDepth:
      return {ForSize(dtype, []<typename T>() -> HostFunction { return &Blocks<T>; }), "own:blocks"};
    case OpType::kTile:
      return {ForSize(dtype, []<typename T>() -> HostFunction { return &Tile<T>; }), "own:rows"};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
