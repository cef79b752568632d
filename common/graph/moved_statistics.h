// Statistics that the forward graph computes itself: of a variable X of kind kStatistic, a node gives "stat.X". After
// each step X is the ordered mean of what the passes of the step computed as it; all of them read what X was before.
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
