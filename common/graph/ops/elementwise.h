// Element-wise arithmetic with multidirectional (numpy) broadcasting, on F32, F64, I64, I32, I8 and U8. Integers wrap
// around; floating operands are differentiated.
//
//   Add(A, B), Sub(A, B), Mul(A, B)
//   Div(A, B)                              integers: towards zero, and 0 where B is 0
//   Mod(A, B)                              with the sign of B; fmod: with that of A, and needed for floating operands.
//                                          Integers: 0 where B is 0
//   Pow(A, B) -> like A                    A of F32, F64, I64 or I32, B of any of these. For integer A: a negative
//                                          whole exponent gives the exact power, truncated towards zero (0 for A = 0);
//                                          an exponent that is not whole is computed in F64 and cast
//   Min(A, ...), Max(A, ...)               1 to 64 operands; NaN wins. Differentiated as a chain of pairs from the
//                                          left; equal operands get half of the gradient each
//   lockstep.Scale(X) -> X * factor        factor is rounded to the element type first
//   lockstep.PowGrad(dY, A, B) -> dA, dB   before the sum over broadcast dimensions, as for the next two. dA is 0 where
//                                          B is 0, dB where A is 0 and B >= 0
//   lockstep.MinGrad(dY, A, B) -> dA, dB   dY goes where the smaller operand is
//   lockstep.MaxGrad(dY, A, B) -> dA, dB
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_ELEMENTWISE_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_ELEMENTWISE_H_

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct ModAttributes {
  bool fmod = false;
  friend bool operator==(const ModAttributes&, const ModAttributes&) = default;
};

struct ScaleAttributes {
  double factor = 1.0;
  friend bool operator==(const ScaleAttributes&, const ScaleAttributes&) = default;
};

absl::Span<const OpSchema> ElementwiseFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_ELEMENTWISE_H_
