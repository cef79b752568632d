// Sums of products in Einstein's notation (einsum_equation.h).
//
//   Einsum(X0, ...) -> Y                      up to eight operands; dimensions of 1 broadcast
//   lockstep.EinsumGrad(dY, X0, ...) -> dX    the gradient of the operand that the attribute `operand` numbers
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_EINSUM_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_EINSUM_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct EinsumAttributes {
  std::string equation;
  int64_t operand = 0;  // of EinsumGrad
  friend bool operator==(const EinsumAttributes&, const EinsumAttributes&) = default;
};

absl::Span<const OpSchema> EinsumFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_EINSUM_H_
