// What a plan changes in a graph before it plans it: matrix products take over the work around them, and work moves to
// smaller values. The values that remain are the same but for rounding; which graph a kernel plan belongs to follows
// from its choices.
//
//   Transpose of an operand's or a result's last two dimensions   the product reads or writes it transposed
//   A [..., m, k] times one B [k, n]                              one product over all rows
//   product + bias [n]                                            Gemm, which adds the bias itself
//   gradient of a ReLU behind that of the maximum pool of it      applied in front, to what the pool kept
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
