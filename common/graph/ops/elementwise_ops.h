// Classifies element-wise ops.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_ELEMENTWISE_OPS_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_ELEMENTWISE_OPS_H_

#include "common/graph/ops/op_type.h"

namespace lockstep {

// True for ops that read element i of an input (or the element broadcast to it) only to compute element i of the first
// output.
bool IsElementwise(OpType op);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_ELEMENTWISE_OPS_H_
