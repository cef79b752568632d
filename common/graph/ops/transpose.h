// Ops that put the dimensions of a tensor into another order.
//
//   Transpose(X) -> Y         Y's dimension i is X's dimension perm[i]; an empty perm reverses the dimensions
//   DepthToSpace(X [N, C*b*b, H, W]) -> Y [N, C, H*b, W*b]
//       channel index of X, from major to minor: (row in the block, column in the block, C) for dcr, (C, row, column)
//       for crd
//   SpaceToDepth(X [N, C, H*b, W*b]) -> Y [N, b*b*C, H, W]       the inverse of dcr
//
// Elements of any type.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_TRANSPOSE_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_TRANSPOSE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct TransposeAttributes {
  std::vector<int64_t> perm;
  friend bool operator==(const TransposeAttributes&, const TransposeAttributes&) = default;

  // The dimension of X that is dimension `i` of Y.
  size_t Source(size_t i, size_t rank) const { return perm.empty() ? rank - 1 - i : static_cast<size_t>(perm[i]); }
};

enum class BlockMode : uint8_t { kDcr, kCrd };

// Of DepthToSpace and SpaceToDepth; SpaceToDepth supports only kDcr.
struct BlockAttributes {
  int64_t block_size = 1;
  BlockMode mode = BlockMode::kDcr;
  friend bool operator==(const BlockAttributes&, const BlockAttributes&) = default;
};

absl::Span<const OpSchema> TransposeFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_TRANSPOSE_H_
