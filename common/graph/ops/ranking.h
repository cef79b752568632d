// Ops that compare elements along an axis. F32, F64, I64, I32, I8 and U8; a NaN is larger than every number, but
// ArgMin takes it for the smallest.
//
//   ArgMax(X), ArgMin(X) -> Y I64       the index of the first such element, or of the last one
//   TopK(X) -> values, indices I64      the k largest or smallest, sorted; equal elements keep their order
//   OneHot(I, values [off, on]) -> Y    a new dimension `axis` of `depth`: on at the index (from its end where it is
//                                       negative), off elsewhere and everywhere for an index outside. I is I64, I32,
//                                       or F64 or F32, which is truncated to an integer; values are of any type
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_RANKING_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_RANKING_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

// Of ArgMax and ArgMin.
struct ArgAttributes {
  int64_t axis = 0;  // may be negative
  bool keep_dims = true;
  bool select_last_index = false;
  friend bool operator==(const ArgAttributes&, const ArgAttributes&) = default;
};

struct TopKAttributes {
  int64_t k = 0;
  int64_t axis = -1;
  bool largest = true;
  bool sorted = true;  // false allows any order; the result is sorted all the same
  friend bool operator==(const TopKAttributes&, const TopKAttributes&) = default;
};

struct OneHotAttributes {
  int64_t depth = 1;
  int64_t axis = -1;  // of the result
  friend bool operator==(const OneHotAttributes&, const OneHotAttributes&) = default;
};

absl::Span<const OpSchema> RankingFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_RANKING_H_
