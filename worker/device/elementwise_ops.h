// Which ops compute each element of their first output from elements of their operands at the same place.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_ELEMENTWISE_OPS_H_
#define LOCKSTEP_WORKER_DEVICE_ELEMENTWISE_OPS_H_

#include "common/graph/ops/ir.h"

namespace lockstep::device {

// True for those that read element i of an input, or what stands for it where the input is broadcast, only to write
// element i of the first output.
bool IsElementwise(OpType op);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_ELEMENTWISE_OPS_H_
