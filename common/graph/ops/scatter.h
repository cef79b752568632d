// Ops that write elements by index. Indices are those of gather.h. Of equal indices the last one in index order wins;
// with a reduction all updates are applied in that order. An index out of range writes nothing outside the tensor: it
// makes all of Y NaN, and is skipped in a type without NaN.
//
//   ScatterElements(X, I, U) -> Y       X with u[i, j, ...] at [.., I[i, j, ...], ..], the index on `axis`
//   ScatterND(X, I [.., n], U) -> Y     X with the slices U at the n leading coordinates in I's last dimension
//       X has elements of any type when the reduction is none; else F32, F64, I64, I32, I8 or U8
//   lockstep.ScatterElementsGrad, lockstep.ScatterNDGrad(dY, I) -> dX
//       dY, but 0 where an element was written. F32 and F64
//
// Gradients exist for the reductions none and add. Without a reduction, every update of an index that occurs several
// times gets the gradient, as in PyTorch.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_SCATTER_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_SCATTER_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

enum class ScatterReduction : uint8_t { kNone, kAdd, kMul, kMax, kMin };

// Of ScatterElements and its gradient.
struct ScatterAttributes {
  int64_t axis = 0;  // may be negative
  ScatterReduction reduction = ScatterReduction::kNone;
  friend bool operator==(const ScatterAttributes&, const ScatterAttributes&) = default;
};

// Of ScatterND.
struct ScatterNdAttributes {
  ScatterReduction reduction = ScatterReduction::kNone;
  friend bool operator==(const ScatterNdAttributes&, const ScatterNdAttributes&) = default;
};

absl::Span<const OpSchema> ScatterFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_SCATTER_H_
