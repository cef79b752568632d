// Ops that change only the shape. All but Expand keep the row-major order of the elements, so a plan may let Y share
// X's memory.
//
//   Flatten(X) -> Y [d0 * ... * d(axis-1), d(axis) * ... ]
//   Reshape(X) -> Y       shape: 0 copies X's dimension unless allow_zero, one -1 is what remains
//   Squeeze(X) -> Y       X without the dimensions `axes`, which are 1; without all that are 1 when `axes` is empty
//   Unsqueeze(X) -> Y     X with dimensions of 1 inserted, whose positions in Y are `axes`
//   Expand(X) -> Y        X broadcast with shape (multidirectional)
//
// Elements of any type.
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

// Of Squeeze and Unsqueeze.
struct SqueezeAttributes {
  std::vector<int64_t> axes;  // may be negative
  friend bool operator==(const SqueezeAttributes&, const SqueezeAttributes&) = default;
};

struct ExpandAttributes {
  std::vector<int64_t> shape;
  friend bool operator==(const ExpandAttributes&, const ExpandAttributes&) = default;
};

absl::Span<const OpSchema> ShapeFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_SHAPE_OPS_H_
