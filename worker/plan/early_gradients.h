// Moves the nodes that only finish gradients of parameters (Cast, Scale, Transpose, Reshape and the like) directly
// behind the nodes that they read, so that a bucket can be reduced early. Otherwise, for example, the casts of BF16
// gradients follow the whole backward pass, since variables are cast before the forward pass. The nodes themselves do
// not change, so neither do bits.
//
// Threading: immutable (a free function).
#ifndef LOCKSTEP_WORKER_PLAN_EARLY_GRADIENTS_H_
#define LOCKSTEP_WORKER_PLAN_EARLY_GRADIENTS_H_

#include "common/graph/ops/ir.h"

namespace lockstep::worker {

// A node whose result is read by a node that does not move stays too, unless the result is a gradient: moving it would
// only keep the wider copy alive for longer. REQUIRES: `graph` is differentiated, and its outputs are known.
void FinishGradientsEarly(Graph* graph);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_EARLY_GRADIENTS_H_
