// Lets a graph for training or evaluation compute with BF16 where that is safe, by casts. It runs on a graph whose
// shapes are known, with its loss, before it is differentiated: gradients then follow the casts, and those of
// parameters are F32 again. What an op with BF16 operands means stands in ops/wide_operands.h.
//
//   op                                                        operands
//   products, convolutions, attention                         become BF16
//   a Gather from a parameter or buffer                       F32; what was gathered becomes BF16
//   a cross entropy whose log_prob is not read                stay; it gives F32
//   other losses, metrics, reductions that sum, powers, roots,      become F32
//     exponentials, logarithms, running sums
//   Cast                                                      stay
//   everything else                                           become BF16 where one of them is, else stay F32
//
// Operands that stay F32 beside BF16 (scales of norms, statistics) are never rounded. A constant is rounded here, once;
// a finite one stays finite. Values of types other than F32 are left alone.
//
// Threading: immutable (a free function).
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_REDUCE_PRECISION_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_REDUCE_PRECISION_H_

#include "absl/status/status.h"
#include "common/graph/ir.h"

namespace lockstep {

// REQUIRES: shapes are inferred; outputs of the graph are those of losses and metrics.
absl::Status ReducePrecision(Graph* graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_REDUCE_PRECISION_H_
