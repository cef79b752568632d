// Lets the nodes that only finish gradients of parameters, casts of BF16 to F32 and moves, follow what they read. A
// gradient is reduced once it is finished, and variables are cast in front of the forward pass, so the casts of their
// gradients come behind the whole backward pass otherwise. The nodes stay the same ones: no bit depends on it.
//
// Threading: immutable (a free function).
#ifndef LOCKSTEP_WORKER_PLAN_EARLY_GRADIENTS_H_
#define LOCKSTEP_WORKER_PLAN_EARLY_GRADIENTS_H_

#include "common/graph/ops/ir.h"

namespace lockstep::worker {

// A node whose result is no gradient yet, but is read by one that stays, stays too: of a sum with what comes last only
// the wider copy would be kept longer. REQUIRES: `graph` is differentiated, and its outputs are known.
void FinishGradientsEarly(Graph* graph);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_EARLY_GRADIENTS_H_
