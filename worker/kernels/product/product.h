// The sizes of matrix products, from attributes and shapes that shape inference has accepted.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_PRODUCT_PRODUCT_H_
#define LOCKSTEP_WORKER_KERNELS_PRODUCT_PRODUCT_H_

#include <algorithm>
#include <cstdint>

#include "common/graph/ops/gemm.h"
#include "common/tensor/shape.h"
#include "worker/kernels/broadcast.h"

namespace lockstep::device {

// y [m, n] = op(a) [m, k] * op(b) [k, n]; a transposed operand is stored [k, m] or [n, k].
struct MatrixShape {
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  bool trans_a = false;
  bool trans_b = false;
};

// One product per element of `batch`, to which the operands' leading dimensions broadcast.
struct BatchedMatrixShape {
  MatrixShape matrix;
  Shape batch;
  Shape a_batch;
  Shape b_batch;

  int64_t count() const { return NumElements(batch); }
  // The index of the matrix of `a` or `b` that product `index` reads.
  int64_t a_index(int64_t index) const { return BroadcastIndex(index, batch, a_batch); }
  int64_t b_index(int64_t index) const { return BroadcastIndex(index, batch, b_batch); }
};

inline MatrixShape GemmShape(const GemmAttributes& attributes, const Shape& a, const Shape& b) {
  return {.m = attributes.trans_a ? a[1] : a[0],
          .n = attributes.trans_b ? b[0] : b[1],
          .k = attributes.trans_a ? a[0] : a[1],
          .trans_a = attributes.trans_a,
          .trans_b = attributes.trans_b};
}

inline BatchedMatrixShape BatchMatMulShape(const BatchMatMulAttributes& attributes, const Shape& a, const Shape& b) {
  BatchedMatrixShape result;
  result.matrix = GemmShape({.trans_a = attributes.trans_a, .trans_b = attributes.trans_b}, Shape(a.end() - 2, a.end()),
                            Shape(b.end() - 2, b.end()));
  result.a_batch.assign(a.begin(), a.end() - 2);
  result.b_batch.assign(b.begin(), b.end() - 2);
  const size_t rank = std::max(result.a_batch.size(), result.b_batch.size());
  for (size_t i = 0; i < rank; ++i) {
    const auto dim = [&](const Shape& s) { return i + s.size() < rank ? 1 : s[i + s.size() - rank]; };
    result.batch.push_back(dim(result.a_batch) == 1 ? dim(result.b_batch) : dim(result.a_batch));
  }
  return result;
}

// As numpy.matmul: an operand of rank 1 is a row on the left and a column on the right.
inline BatchedMatrixShape MatMulShape(Shape a, Shape b) {
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  return BatchMatMulShape({}, a, b);
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_PRODUCT_PRODUCT_H_
