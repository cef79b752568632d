// Finds the files of an earlier checkpoint that a save can reuse as its frozen share
// (common/checkpoint_format/shares.h), instead of asking a worker for it.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_FROZEN_FILES_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_FROZEN_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint_format/checkpoint_tensor.h"
#include "common/checkpoint_format/shares.h"
#include "common/digest/sha256.h"
#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

struct FrozenFiles {
  std::vector<std::string> from;        // a path for each file of the share, relative to the earlier checkpoint
  std::vector<ManifestFile> files;      // their entries in the save's manifest, with their new names
  std::vector<ManifestTensor> tensors;  // the entries of their tensors, in the order of the share's pieces
  std::vector<Sha256Digest> digests;    // of `tensors`
};

// The files of the checkpoint with `manifest` that hold the tensors of `share`. NotFound: its files hold other tensors,
// or have no leaves (format version 1).
absl::StatusOr<FrozenFiles> FindFrozenFiles(absl::Span<const CheckpointTensor> layout, const Share& share,
                                            const Manifest& manifest);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_FROZEN_FILES_H_
