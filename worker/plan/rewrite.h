// Graph rewrites before planning: matrix products absorb adjacent nodes, and work moves to smaller values. Remaining
// values are the same up to rounding. A kernel plan needs no mark of the rewriting: its choices name the rewritten
// nodes.
//
//   Transpose of an operand's or a result's last two dimensions   the product reads or writes it transposed
//   A [..., m, k] times a single B [k, n]                         one product over all rows
//   product + bias [n]                                            Gemm, which adds the bias
//   gradient of ReLU after the gradient of max pooling            applied before it, to the smaller pooled values
//
// Threading: immutable (free functions).
#ifndef LOCKSTEP_WORKER_PLAN_REWRITE_H_
#define LOCKSTEP_WORKER_PLAN_REWRITE_H_

#include "common/graph/ops/ir.h"

namespace lockstep::worker {

// The graph to plan in place of `graph`: same inputs, variables and outputs. REQUIRES: shapes are inferred.
Graph RewriteForPlan(const Graph& graph);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_REWRITE_H_
