// Names that only a job in a bucket uses. Files there have their final name from the first byte, and count only once a
// record of the log names them. Every save therefore has a unique name, which includes the term that wrote it.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_BUCKET_NAMING_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_BUCKET_NAMING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::layout {

// "checkpoints/step-000001200.t7-5f0c33aa91d2e4b8". REQUIRES: `nonce` is letters and digits, not empty.
std::string BucketCheckpointPath(int64_t step, int64_t term, absl::string_view nonce);

// The folder of a checkpoint, on a disk or in a bucket.
struct CheckpointFolder {
  int64_t step = 0;
  std::optional<int64_t> term;  // of the chief that wrote it; only in a bucket

  friend bool operator==(const CheckpointFolder&, const CheckpointFolder&) = default;
};

// Parses "step-000001200" and "step-000001200.t7-5f0c33aa91d2e4b8"; nullopt for any other name.
std::optional<CheckpointFolder> ParseCheckpointFolder(absl::string_view name);

// "chief/alive-term-000007": the sign of life that the chief of this term rewrites periodically. Each term has its own,
// so a chief that was replaced and does not know it yet cannot overwrite its successor's.
std::string AlivePath(int64_t term);

}  // namespace lockstep::layout

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_BUCKET_NAMING_H_
