#include "common/checkpoint_format/state_tensors.h"

namespace lockstep {

std::vector<CheckpointTensor> ToCheckpointTensors(const StateLayout& layout) {
  std::vector<CheckpointTensor> tensors;
  tensors.reserve(layout.tensors.size());
  for (const StateTensor& tensor : layout.tensors) {
    tensors.push_back({std::string(kGroups[static_cast<size_t>(tensor.group)]), tensor.spec});
  }
  return tensors;
}

}  // namespace lockstep
