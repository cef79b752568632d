// In a training graph, makes one product of those whose sum is a gradient, as those of a weight that every step of a
// recurrence reads.
//
//   Add(Add(Gemm(A1ᵀ, B1), Gemm(A2ᵀ, B2)), Gemm(A3ᵀ, B3))  becomes  Gemm(Concat(A1, A2, A3)ᵀ, Concat(B1, B2, B3))
//
// The sum over the rows of all is one sum then: the weight's gradient is written once instead of read and written for
// every step. Rounding differs. Only where that saves more than copying the rows costs: a few rows of a large weight.
//
// Threading: immutable (a free function).
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_JOIN_PRODUCTS_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_JOIN_PRODUCTS_H_

#include "absl/status/statusor.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// Returns the number of sums that became products. REQUIRES: shapes are inferred.
absl::StatusOr<int> JoinProducts(Graph* graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_JOIN_PRODUCTS_H_
