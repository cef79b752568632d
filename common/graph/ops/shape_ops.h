// Ops that change the shape alone. Flatten and Reshape keep the row-major order of the elements: a plan may alias.
//
//   Flatten(X) -> Y [d0 * ... * d(axis-1), d(axis) * ... ]
//   Reshape(X) -> Y       shape: 0 copies X's dimension unless allow_zero, one -1 is what remains
//   Expand(X) -> Y        X broadcast with shape (multidirectional)
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_SHAPE_OPS_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_SHAPE_OPS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct FlattenAttributes {
  int64_t axis = 1;  // may be negative
  friend bool operator==(const FlattenAttributes&, const FlattenAttributes&) = default;
};

struct ReshapeAttributes {
  std::vector<int64_t> shape;
  bool allow_zero = false;
  friend bool operator==(const ReshapeAttributes&, const ReshapeAttributes&) = default;
};

struct ExpandAttributes {
  std::vector<int64_t> shape;
  friend bool operator==(const ExpandAttributes&, const ExpandAttributes&) = default;
};

absl::Span<const OpSchema> ShapeFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_SHAPE_OPS_H_
