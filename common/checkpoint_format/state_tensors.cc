#include "common/checkpoint_format/state_tensors.h"

namespace lockstep {

std::vector<CheckpointTensor> ToCheckpointTensors(const StateLayout& layout) {
  std::vector<CheckpointTensor> tensors;
  tensors.reserve(layout.tensors.size());
  for (const StateTensor& tensor : layout.tensors) {
    const absl::string_view group = tensor.group == StateGroup::kModel ? kModelGroup : kOptimizerGroup;
    tensors.push_back({std::string(group), tensor.spec});
  }
  return tensors;
}

}  // namespace lockstep
