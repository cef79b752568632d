// Comparisons, logic, choice and casts: ops whose result is of another type than their operands. Operands broadcast.
//
//   Equal(A, B) -> BOOL                         numbers or bools
//   Greater(A, B), GreaterOrEqual(A, B), Less(A, B), LessOrEqual(A, B) -> BOOL
//   And(A, B), Or(A, B), Xor(A, B), Not(X)      bools
//   IsNaN(X), IsInf(X) -> BOOL                  floating operands
//   Where(condition BOOL, X, Y)                 any element type; X where the condition holds
//   lockstep.WhereGrad(dY, condition) -> dX, dElse     dY where the condition holds, else 0, and the other way round;
//                                               before the sum over broadcast dimensions
//   Cast(X) -> `to`                             between BOOL, U8, I8, I32, I64, F32 and F64. Floating to integers:
//                                               truncates towards zero, saturates at the limits of the type, and makes
//                                               NaN 0. Among integers: modulo 2^bits. To BOOL: whether it is not 0.
//                                               Differentiated between floating types
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_LOGIC_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_LOGIC_H_

#include "absl/types/span.h"
#include "common/tensor/dtype.h"

namespace lockstep {

struct OpSchema;

struct CastAttributes {
  DType to = DType::kF32;
  friend bool operator==(const CastAttributes&, const CastAttributes&) = default;
};

struct IsInfAttributes {
  bool detect_negative = true;
  bool detect_positive = true;
  friend bool operator==(const IsInfAttributes&, const IsInfAttributes&) = default;
};

absl::Span<const OpSchema> LogicFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_LOGIC_H_
