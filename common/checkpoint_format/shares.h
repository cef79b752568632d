// Which tensors form share k of n of a state, and in which order their bytes travel and lie in files. A pure function
// of the state's layout and n, so that workers (upload, restore) and the chief agree without a message.
//
// The stream of a share is the bytes of its tensors one after another, nothing between them: first those of its model
// file, then those of its optimizer file, then those of averages, each in the file's order. Tensors are never split.
//
// Invariants
//   * Every tensor of the layout lies in exactly one share.
//   * For a given layout, shares differ by at most the largest tensor (largest first, to the lightest share).
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SHARES_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SHARES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint_format/checkpoint_tensor.h"

namespace lockstep {

// One tensor in a share's stream.
struct SharePiece {
  int tensor = 0;      // index into the layout
  int file = 0;        // index into Share::files
  uint64_t begin = 0;  // offset in the share's stream
  uint64_t bytes = 0;

  friend bool operator==(const SharePiece&, const SharePiece&) = default;
};

struct ShareFile {
  std::string group;
  std::string path;          // relative to the checkpoint: layout::ShardPath
  std::vector<int> tensors;  // indices into the layout, in the file's order

  friend bool operator==(const ShareFile&, const ShareFile&) = default;
};

struct Share {
  std::vector<ShareFile> files;    // at most one per group
  std::vector<SharePiece> pieces;  // in stream order, begins ascending
  uint64_t bytes = 0;
};

struct SharePlan {
  std::vector<Share> shares;  // exactly n; trailing ones may be empty when there are fewer tensors than shares
};

// For each size, the share it belongs to: largest first (then lowest index), each to the share with the fewest bytes so
// far (then fewest items, then lowest index). `loads` carries bytes already given to each share; it is updated.
std::vector<int> SpreadBySize(absl::Span<const uint64_t> sizes, absl::Span<uint64_t> loads);

// Frozen tensors get a share of their own only when they have at least so many bytes in total.
inline constexpr uint64_t kLeastFrozenBytes = 1 << 20;

// The bytes of the layout's frozen tensors when they get a share of their own in saves, else 0. Their own share means
// their own files, which a storage that already has them need not store again.
uint64_t FrozenShareBytes(absl::Span<const CheckpointTensor> layout);
inline bool HasFrozenShare(absl::Span<const CheckpointTensor> layout) { return FrozenShareBytes(layout) > 0; }

// Cuts a state into `shares` shares to save it. When the layout has a frozen share, the last share holds the frozen
// tensors, and the others are spread over the shares before it. InvalidArgument as PlanShares, and for fewer than two
// shares when there is a frozen one.
absl::StatusOr<SharePlan> PlanSave(absl::Span<const CheckpointTensor> layout, int shares);

// Cuts a state into `shares` shares of similar size, to fetch it; frozen tensors are treated like the others.
// InvalidArgument: shares < 1, an unknown group, a name twice, a bad tensor.
absl::StatusOr<SharePlan> PlanShares(absl::Span<const CheckpointTensor> layout, int shares);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SHARES_H_
