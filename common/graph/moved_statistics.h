// Statistics that the forward graph updates itself: a node computes "stat.X", the next value of the variable X of kind
// kStatistic. Every pass of a step reads the old X; after the step X is the mean of the passes' "stat.X", summed in a
// fixed order.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_MOVED_STATISTICS_H_
#define LOCKSTEP_COMMON_GRAPH_MOVED_STATISTICS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// "stat.<variable>".
std::string MovedValueName(absl::string_view variable);

// The variables that nodes of the graph move, in the order of the variables.
std::vector<std::string> MovedStatistics(const Graph& graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_MOVED_STATISTICS_H_
