// A tensor of the state as a checkpoint sees it: what it is, and which group of files it lies in.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_CHECKPOINT_TENSOR_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_CHECKPOINT_TENSOR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/tensor/tensor.h"

namespace lockstep {

inline constexpr absl::string_view kModelGroup = "model";
inline constexpr absl::string_view kOptimizerGroup = "optimizer";
inline constexpr absl::string_view kEmaGroup = "ema";
// In the order in which a share holds them.
inline constexpr absl::string_view kGroups[] = {kModelGroup, kOptimizerGroup, kEmaGroup};

// Prefix of the names of kEmaGroup's tensors within the state. The files of the group leave it out and use the model's
// names.
inline constexpr absl::string_view kEmaPrefix = "lockstep.ema.";

struct CheckpointTensor {
  std::string group;  // one of kGroups
  TensorSpec spec;
  bool frozen = false;  // training never changes its bytes; not stored in checkpoints, hence not compared

  friend bool operator==(const CheckpointTensor& a, const CheckpointTensor& b) {
    return a.group == b.group && a.spec == b.spec;
  }
};

// True when a state may hold a tensor of that name in that group.
inline bool IsInGroup(absl::string_view name, absl::string_view group) {
  if (group == kEmaGroup) return absl::StartsWith(name, kEmaPrefix) && name.size() > kEmaPrefix.size();
  return group == kModelGroup || group == kOptimizerGroup;
}

// OK when a safetensors file can hold a tensor of that name. InvalidArgument when the name is empty, reserved
// ("__metadata__"), contains a zero byte, or is not UTF-8.
absl::Status CheckTensorName(absl::string_view name);

// The name of a tensor in the files of a group. REQUIRES: IsInGroup(name, group).
inline std::string NameInFile(absl::string_view name, absl::string_view group) {
  return std::string(group == kEmaGroup ? absl::StripPrefix(name, kEmaPrefix) : name);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_CHECKPOINT_TENSOR_H_
