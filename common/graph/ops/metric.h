// Counts for metrics, as exact integers.
//
//   lockstep.CountCorrect(scores [N, C, d...], labels [N, d...], mask [N]) -> correct, top5, counted     I64 scalars
//       over the labels other than ignore_index in rows whose mask is not 0. correct: labels with the largest score;
//       top5: labels with one of the five largest scores; counted: all of these labels. Of equal scores the first is
//       the larger; a NaN is larger than every number
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
