// Reductions over axes; roots and logarithms of floating types only. An empty list of axes means all of them, unless
// noop_with_empty_axes.
//
//   ReduceSum(X), ReduceMean(X), ReduceMax(X), ReduceMin(X), ReduceProd(X)
//   ReduceL1(X), ReduceL2(X), ReduceSumSquare(X)
//   ReduceLogSum(X), ReduceLogSumExp(X)        LogSumExp subtracts the largest element first and cannot overflow
//       A NaN among the reduced elements makes the result NaN. Over no elements a sum is 0, a product 1, a maximum the
//       lowest value of the type and a minimum the highest.
//   lockstep.ReduceGrad(dY, X, Y) -> dX        the gradient of the op that the attribute `of` names
//       max, min: shared equally among equal extremes; first_max: the first in row-major order gets all of it
//       prod: the product of the others, also where one is zero; l1: 0 at zero; l2: 0 where the norm is zero
//   lockstep.MaskedSum(values [N, d...], mask [N]) -> scalar    sum of the rows whose mask is not 0; other rows
//       are not read
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

enum class ReduceKind : uint8_t { kMax, kMin, kFirstMax, kProd, kL1, kL2, kLogSum, kLogSumExp, kSumSquare };

// Of ReduceGrad.
struct ReduceGradAttributes {
  ReduceKind of = ReduceKind::kMax;
  ReduceAttributes reduce;  // the forward op's
  friend bool operator==(const ReduceGradAttributes&, const ReduceGradAttributes&) = default;
};

absl::Span<const OpSchema> ReduceFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_REDUCE_H_
