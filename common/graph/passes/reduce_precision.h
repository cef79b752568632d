// Lets a graph for training or evaluation compute with BF16 where that is safe, by casts. It runs on a graph whose
// shapes are known, with its loss, before it is differentiated: gradients then follow the casts, and those of
// parameters are F32 again. What an op with BF16 operands means stands in ops/wide_operands.h.
//
//   op                                                        operands
//   products, convolutions, attention                         become BF16
//   a Gather from a variable                                  F32; what was gathered becomes BF16
//   a cross entropy whose log_prob is not asked for           BF16 where the scores are; it gives F32
//   other losses, metrics, reductions that sum, powers,       become F32
//     roots, exponentials, logarithms, running sums
//   Cast                                                      stay
//   everything else                                           become BF16 where one of them is, else stay F32
//
// What no variable reaches (positions and their angles, masks, the preparation of inputs) stays F32 until it meets
// BF16; so does a result of one element, losses among them, and what leaves the graph. Operands that stay F32 beside
// BF16 (scales of norms, statistics) are never rounded. Constants are rounded here, once, and finite ones stay finite:
// exporters write masks with the lowest float. What is computed from constants and inputs is bounded before it is
// rounded, for the same reason, infinities too. Variables are cast in front of everything. Types other than F32 are
// left alone.
//
// Threading: immutable (a free function).
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_REDUCE_PRECISION_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_REDUCE_PRECISION_H_

#include "absl/status/status.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// REQUIRES: shapes are inferred.
absl::Status ReducePrecision(Graph* graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_REDUCE_PRECISION_H_
