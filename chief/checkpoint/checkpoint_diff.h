// What two checkpoints differ in, tensor by tensor, for people.
//
// Threading: thread-compatible; blocks on both storages.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_DIFF_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_DIFF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"

namespace lockstep::chief {

// A line for each tensor that one of them lacks, or that differs in type, shape or values; sorted by name. Values are
// read only of tensors whose digests differ; two float tensors are called different where their bits are, and the
// largest distance is told. Empty: the states are the same. Codes of the storage; DataLoss as CheckpointReader.
absl::StatusOr<std::vector<std::string>> DiffCheckpoints(const CheckpointReader& first, const CheckpointReader& second);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CHECKPOINT_DIFF_H_
