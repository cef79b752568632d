// Ops that pick elements by index. Indices are I32 or I64 and may be negative: -1 is the last. An index out of range
// touches no memory outside the tensor: it picks NaN (0 in a type without NaN), as an out-of-range label makes its loss
// NaN, and it makes the whole gradient NaN, so that the step is treated as `train.on_nan` says.
//
//   Gather(X, I) -> Y              X's slices I along `axis`; Y has X's shape with I's in place of that dimension
//   GatherElements(X, I) -> Y      of I's shape; y[i, j, ...] = x[.., I[i, j, ...], ..] with the index on `axis`
//   GatherND(X, I [.., n]) -> Y    X's slices at the n leading coordinates in I's last dimension; the first batch_dims
//                                  dimensions are common to both
//   lockstep.GatherGrad, lockstep.GatherElementsGrad, lockstep.GatherNDGrad(dY, I) -> dX
//                                  for X of `input_shape`: 0 plus every dY, in the order of I, where it was picked
//
// X has elements of any type, dY F32 or F64.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_GATHER_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_GATHER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

// Of Gather and GatherElements and their gradients.
struct GatherAttributes {
  int64_t axis = 0;                    // may be negative
  std::vector<int64_t> input_shape{};  // of the gradients
  friend bool operator==(const GatherAttributes&, const GatherAttributes&) = default;
};

// Of GatherND and its gradient.
struct GatherNdAttributes {
  int64_t batch_dims = 0;
  std::vector<int64_t> input_shape{};  // of the gradient
  friend bool operator==(const GatherNdAttributes&, const GatherNdAttributes&) = default;
};

absl::Span<const OpSchema> GatherFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_GATHER_H_
