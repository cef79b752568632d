// The file `checkpoint` in a folder of TensorFlow checkpoints, which names the newest one for
// tf.train.latest_checkpoint.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_CHECKPOINT_STATE_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_CHECKPOINT_STATE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

inline constexpr char kCheckpointStateFile[] = "checkpoint";
inline constexpr size_t kMaxCheckpointStateBytes = 1 << 20;

// The content of a file that names the checkpoint `prefix` of its folder. Its first line marks it as written by
// Lockstep.
std::string EncodeCheckpointState(absl::string_view prefix);
// True for texts that EncodeCheckpointState returns.
bool IsOurCheckpointState(absl::string_view text);

// The prefix of the newest checkpoint, relative to the folder or absolute. DataLoss when the file names none.
absl::StatusOr<std::string> ParseCheckpointState(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_CHECKPOINT_STATE_H_
