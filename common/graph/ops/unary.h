// Functions of one operand, element by element. Only floating operands have gradients; those of Sign, Floor, Ceil and
// Round are zero everywhere, as in PyTorch.
//
//   Neg(X), Abs(X), Sign(X)                floating or integers, which wrap around; the gradient of Abs at 0 is 0
//   Reciprocal(X), Sqrt(X), Exp(X), Log(X), Erf(X)
//   Sin(X), Cos(X), Tan(X), Asin(X), Acos(X), Atan(X), Sinh(X), Cosh(X), Asinh(X), Acosh(X), Atanh(X)
//   Floor(X), Ceil(X), Round(X)            Round: of two equally near, the even one
//   Identity(X)                            any element type; a plan may let Y share X's memory
//   lockstep.ErfGrad(dY, X) -> dX          dY * 2 / sqrt(pi) * exp(-X^2)
//   lockstep.<Op>Grad(dY, X) -> dX         dY times the slope of the op at X, for Asin, Atan, Asinh, Acosh, Atanh; not
//                                          finite where the slope is not
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_UNARY_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_UNARY_H_

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

absl::Span<const OpSchema> UnaryFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_UNARY_H_
