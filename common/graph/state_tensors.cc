#include "common/graph/state_tensors.h"

namespace lockstep {
namespace {

bool IsFrozen(const StateLayout& layout, const StateTensor& tensor) {
  if (tensor.kind != StateKind::kAlias) return tensor.kind == StateKind::kFrozen;
  const int named = layout.Find(tensor.variable);
  return named >= 0 && layout.tensors[static_cast<size_t>(named)].kind == StateKind::kFrozen;
}

}  // namespace

std::vector<CheckpointTensor> ToCheckpointTensors(const StateLayout& layout) {
  std::vector<CheckpointTensor> tensors;
  tensors.reserve(layout.tensors.size());
  for (const StateTensor& tensor : layout.tensors) {
    tensors.push_back({std::string(kGroups[static_cast<size_t>(tensor.group)]), tensor.spec, IsFrozen(layout, tensor)});
  }
  return tensors;
}

}  // namespace lockstep
