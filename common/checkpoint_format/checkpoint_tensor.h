// A tensor of the state as a checkpoint sees it: what it is, and which group of files it lies in.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_CHECKPOINT_TENSOR_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_CHECKPOINT_TENSOR_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/tensor/tensor.h"

namespace lockstep {

inline constexpr absl::string_view kModelGroup = "model";
inline constexpr absl::string_view kOptimizerGroup = "optimizer";

struct CheckpointTensor {
  std::string group;  // kModelGroup or kOptimizerGroup
  TensorSpec spec;

  friend bool operator==(const CheckpointTensor&, const CheckpointTensor&) = default;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_CHECKPOINT_TENSOR_H_
