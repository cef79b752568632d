// Inserts casts so that a training or evaluation graph computes with BF16 where that is safe. It runs on a graph whose
// shapes are known, with its loss, before it is differentiated: gradients then follow the casts, and those of
// parameters are F32 again. ops/wide_operands.h defines what an op with BF16 operands computes.
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
// Values that depend on no variable (positions and their angles, masks, prepared inputs) stay F32 until they meet BF16.
// Results of one element, such as losses, and the graph's outputs stay F32. Operands that stay F32 beside BF16 (scales
// of norms, statistics) are never rounded. Constants are rounded here, once, and finite ones stay finite: exporters
// write masks with the lowest float. Values computed from constants and inputs are bounded before they are rounded,
// infinities too, for the same reason. The casts of variables stand before all other nodes. Types other than F32 are
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
