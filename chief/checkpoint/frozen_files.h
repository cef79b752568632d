// The frozen share of a save (common/checkpoint_format/shares.h) as files that an earlier checkpoint has: what of it a
// save can take over instead of asking a worker for it.
//
// Threading: immutable.
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
  std::vector<std::string> from;        // one for each file of the share, relative to the checkpoint that has it
  std::vector<ManifestFile> files;      // entries of the save's manifest, under the names that they get there
  std::vector<ManifestTensor> tensors;  // likewise, in the order of the share's pieces
  std::vector<Sha256Digest> digests;    // of `tensors`
};

// NotFound: the files of this checkpoint hold other tensors, or have no leaves (format version 1).
absl::StatusOr<FrozenFiles> FindFrozenFiles(absl::Span<const CheckpointTensor> layout, const Share& share,
                                            const Manifest& manifest);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_FROZEN_FILES_H_
