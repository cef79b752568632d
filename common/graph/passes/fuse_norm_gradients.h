// In a training graph: the gradient of a layer or root-mean-square norm is added by the op that computes it to what
// reaches the norm's input by the residual connection, which saves a pass over both.
//
//   Add(LayerNormGrad(dY, X, ...).dX, dSum)  becomes  LayerNormGrad(dY, X, ..., dSum).dX
//
// where nothing else reads that dX, and dSum is computed before. With F32 the bits stay; with BF16 one rounding less.
//
// Threading: immutable (a free function).
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_FUSE_NORM_GRADIENTS_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_FUSE_NORM_GRADIENTS_H_

#include "common/graph/ops/ir.h"

namespace lockstep {

// Returns how many it found. REQUIRES: shapes are inferred.
int FuseNormGradients(Graph* graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_FUSE_NORM_GRADIENTS_H_
