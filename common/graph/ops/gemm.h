// Matrix products.
//
//   Gemm(A, B, C?) -> Y           Y = alpha * op(A) op(B) + beta * C; C broadcasts to [m, n] (unidirectionally)
//   MatMul(A, B) -> Y             as numpy.matmul: leading dimensions broadcast, operands of rank 1 allowed
//   lockstep.BatchMatMul(A, B)    operands of rank >= 2; leading dimensions broadcast; each operand may be transposed
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_GEMM_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_GEMM_H_

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct GemmAttributes {
  double alpha = 1.0;
  double beta = 1.0;
  bool trans_a = false;
  bool trans_b = false;
  friend bool operator==(const GemmAttributes&, const GemmAttributes&) = default;
};

struct BatchMatMulAttributes {
  bool trans_a = false;
  bool trans_b = false;
  friend bool operator==(const BatchMatMulAttributes&, const BatchMatMulAttributes&) = default;
};

absl::Span<const OpSchema> GemmFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_GEMM_H_
