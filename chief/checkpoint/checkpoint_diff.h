// Compares two checkpoints tensor by tensor, for people.
//
// Threading: thread-compatible; blocks on both storages.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_DIFF_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_DIFF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"

namespace lockstep::chief {

// Returns a line for each tensor that only one of them has, or that differs in type, shape or values; sorted by name.
// Values are read only of tensors whose digests differ. Float tensors differ if their bits do, and the line gives the
// largest distance. Empty: the states are equal. Codes of the storage; DataLoss as CheckpointReader.
absl::StatusOr<std::vector<std::string>> DiffCheckpoints(const CheckpointReader& first, const CheckpointReader& second);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_DIFF_H_
