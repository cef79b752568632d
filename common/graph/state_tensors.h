// Converts the layout of a job's state to the tensors of a checkpoint.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_STATE_TENSORS_H_
#define LOCKSTEP_COMMON_GRAPH_STATE_TENSORS_H_

#include <vector>

#include "common/checkpoint_format/checkpoint_tensor.h"
#include "common/graph/state_layout.h"

namespace lockstep {

// Element i is tensor i of `layout`.
std::vector<CheckpointTensor> ToCheckpointTensors(const StateLayout& layout);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_STATE_TENSORS_H_
