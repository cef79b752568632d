// Reductions over axes. An empty list of axes means all of them, unless noop_with_empty_axes.
//
//   ReduceSum(X), ReduceMean(X)
//   lockstep.MaskedSum(values [N, d...], mask [N]) -> scalar    sum of the rows whose mask is not 0; others are not
//   read
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_REDUCE_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_REDUCE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct ReduceAttributes {
  std::vector<int64_t> axes;  // may be negative
  bool keep_dims = true;
  bool noop_with_empty_axes = false;
  friend bool operator==(const ReduceAttributes&, const ReduceAttributes&) = default;
};

absl::Span<const OpSchema> ReduceFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_REDUCE_H_
