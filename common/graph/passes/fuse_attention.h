// Replaces attention that is written as products, scale, mask, softmax and dropout by one op (ops/attention.h). It runs
// on the graphs for training and evaluation, whose shapes are known, before they are differentiated; the metagraph
// keeps what was imported.
//
//   Softmax(Q K^T * scale + mask) V, with everything between read by its successor alone, where
//     * K^T is K after any transposes; Q and K may be scaled, and their product once (Mul or Div)
//     * the mask is added (any value that depends on no parameter), or applied by Where with a constant condition; a
//       constant mask that hides the keys after each query becomes `causal`
//     * DropoutTraining may follow the softmax
//     * keys and values may be repeated for several heads of queries (Expand, as PyTorch exports grouped heads)
//   Transposes between [batch, heads, length, size] and [batch, length, heads, size] become attributes; a Split of one
//   dense layer's result into Q, K and V is removed.
//
// Other patterns stay unchanged. Up to rounding the values are the same, and dropout drops the same elements.
//
// Threading: immutable (free functions).
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_FUSE_ATTENTION_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_FUSE_ATTENTION_H_

#include "common/graph/ops/ir.h"

namespace lockstep {

// Returns the number of replacements. Nodes that nothing reads any more stay. REQUIRES: shapes are inferred.
int FuseAttention(Graph* graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_FUSE_ATTENTION_H_
