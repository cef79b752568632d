// Counts for metrics, as exact integers.
//
//   lockstep.CountCorrect(scores [N, C, d...], labels [N, d...], mask [N]) -> correct, counted     both I64 scalars
//       over the rows whose mask is not 0 and the labels other than ignore_index: how many there are, and for how many
//       the largest score (the first of equal ones; a NaN is the largest) stands at the label
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_METRIC_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_METRIC_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct CountCorrectAttributes {
  std::optional<int64_t> ignore_index;
  friend bool operator==(const CountCorrectAttributes&, const CountCorrectAttributes&) = default;
};

absl::Span<const OpSchema> MetricFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_METRIC_H_
