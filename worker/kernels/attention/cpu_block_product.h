// Products of small matrices in a kernel's scratch memory, padded to whole tiles. Every element is a single sum in the
// order of the inner dimension, with fused multiply-add if the instruction set has it, so its bits depend neither on
// the tiles nor on the vector width.
//
// Threading: immutable (free functions).
#ifndef LOCKSTEP_WORKER_KERNELS_ATTENTION_CPU_BLOCK_PRODUCT_H_
#define LOCKSTEP_WORKER_KERNELS_ATTENTION_CPU_BLOCK_PRODUCT_H_

#include <cstdint>

#include "worker/kernels/cpu/vector.h"

namespace lockstep::device::cpu::LS_CODE {

// The columns of right operands and results are padded to a multiple of kColumnStep, the rows of left operands and
// results to a multiple of kTileRows.
inline constexpr int64_t kColumnStep = 16;
inline constexpr int64_t kTileRows = 8;
// The width of a panel of a right operand that is stored in column panels.
inline constexpr int64_t kPanel = 32;

// Rows of a left operand that a tile takes together.
inline constexpr int kRowsAtOnce = kVector == 16 ? 8 : 4;

// A right operand. `row` and `panel`: the distance in elements between rows and between panels of kPanel columns.
struct RightOperand {
  const float* data;
  int64_t row;
  int64_t panel;
};

template <bool kTransposed, int kWide>
[[gnu::always_inline]] inline void ProductTile(const float* a, int64_t a_row, const float* b, int64_t b_row, float* c,
                                               int64_t c_row, int64_t depth, bool add) {
  Vector sums[kRowsAtOnce][kWide];
#pragma GCC unroll 8
  for (int i = 0; i < kRowsAtOnce; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kWide; ++j) sums[i][j] = add ? LoadVector(c + i * c_row + j * kVector) : Vector{};
  }
  for (int64_t k = 0; k < depth; ++k) {
    Vector right[kWide];
#pragma GCC unroll 2
    for (int j = 0; j < kWide; ++j) right[j] = LoadVector(b + k * b_row + j * kVector);
#pragma GCC unroll 8
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const float left = kTransposed ? a[k * a_row + i] : a[i * a_row + k];
#pragma GCC unroll 2
      for (int j = 0; j < kWide; ++j) sums[i][j] = MultiplyAdd(left, right[j], sums[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRowsAtOnce; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kWide; ++j) StoreVector(c + i * c_row + j * kVector, sums[i][j]);
  }
}

// c [rows, columns] = a b, or c += a b with `add`; a is [rows, depth], with kTransposed [depth, rows]. a_row and c_row
// are the distances between rows. REQUIRES: rows is a multiple of kTileRows, columns of kColumnStep.
template <bool kTransposed>
[[gnu::noinline]] static void BlockProduct(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t a_row,
                                           const RightOperand& b, float* c, int64_t c_row, bool add) {
  constexpr int64_t kWide = 2 * kVector;
  for (int64_t j = 0; j < columns;) {
    const float* right = b.data + j / kPanel * b.panel + j % kPanel;
    const bool wide = j + kWide <= columns;
    for (int64_t i = 0; i < rows; i += kRowsAtOnce) {
      const float* left = kTransposed ? a + i : a + i * a_row;
      float* to = c + i * c_row + j;
      if (wide) {
        ProductTile<kTransposed, 2>(left, a_row, right, b.row, to, c_row, depth, add);
      } else {
        ProductTile<kTransposed, 1>(left, a_row, right, b.row, to, c_row, depth, add);
      }
    }
    j += wide ? kWide : kVector;
  }
}

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_ATTENTION_CPU_BLOCK_PRODUCT_H_
