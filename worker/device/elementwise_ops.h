// Classifies element-wise ops.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_ELEMENTWISE_OPS_H_
#define LOCKSTEP_WORKER_DEVICE_ELEMENTWISE_OPS_H_

#include "common/graph/ops/ir.h"

namespace lockstep::device {

// True for ops that read element i of an input (or the element broadcast to it) only to compute element i of the first
// output.
bool IsElementwise(OpType op);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_ELEMENTWISE_OPS_H_
