// Rewrites Einsum as products, sums and transposes, for which every device has fast kernels. It runs on the graphs for
// training and evaluation, whose shapes are known, before they are differentiated; the metagraph keeps what was
// imported.
//
//   Operands are multiplied in their order, two at a time. Labels that only one of the two has and that nothing else
//   needs are summed first (ReduceSum). Labels of both become batch dimensions when the result keeps them, and are
//   summed by the product (BatchMatMul) otherwise; the remaining labels are rows and columns.
//
// A node with an operand that has a label twice (a diagonal) stays unchanged. Up to rounding the values are the same.
//
// Threading: immutable (free functions).
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_SPLIT_EINSUMS_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_SPLIT_EINSUMS_H_

#include "absl/status/status.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// REQUIRES: shapes are inferred.
absl::Status SplitEinsums(Graph* graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_SPLIT_EINSUMS_H_
