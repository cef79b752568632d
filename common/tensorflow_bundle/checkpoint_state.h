// The file `checkpoint` of a folder of TensorFlow checkpoints: which is the newest, for tf.train.latest_checkpoint.
//
// Threading: stateless.
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_CHECKPOINT_STATE_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_CHECKPOINT_STATE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

inline constexpr char kCheckpointStateFile[] = "checkpoint";
inline constexpr size_t kMaxCheckpointStateBytes = 1 << 20;

// A file that names the checkpoint `prefix` of its folder, and says by its first line who wrote it.
std::string EncodeCheckpointState(absl::string_view prefix);
// True for what EncodeCheckpointState returns.
bool IsOurCheckpointState(absl::string_view text);

// The prefix of the newest checkpoint, relative to the folder or from the file system's root. DataLoss: it says none.
absl::StatusOr<std::string> ParseCheckpointState(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_CHECKPOINT_STATE_H_
