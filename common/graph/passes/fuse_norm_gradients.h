// In a training graph, fuses the gradient of a layer or root-mean-square norm with the addition of the gradient that
// reaches the norm's input through the residual connection. This saves a pass over both.
//
//   Add(LayerNormGrad(dY, X, ...).dX, dSum)  becomes  LayerNormGrad(dY, X, ..., dSum).dX
//
// where nothing else reads that dX, and dSum is computed before. With F32 the bits stay the same; with BF16 there is
// one rounding less.
//
// Threading: immutable (a free function).
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_FUSE_NORM_GRADIENTS_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_FUSE_NORM_GRADIENTS_H_

#include "common/graph/ops/ir.h"

namespace lockstep {

// Returns the number of replacements. REQUIRES: shapes are inferred.
int FuseNormGradients(Graph* graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_FUSE_NORM_GRADIENTS_H_
