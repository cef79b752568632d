// The limit on the memory of a graph's values.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_COUNTABLE_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_COUNTABLE_H_

#include "absl/status/status.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// InvalidArgument when the values of a pass have more bytes than any machine has memory. The limit keeps the sums of
// plans, which add scratch and copies, from overflowing. REQUIRES: shapes are inferred.
absl::Status CheckCountable(const Graph& graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_COUNTABLE_H_
