// Lists the differences between two metagraphs for people, to explain why a job cannot continue from another job's
// checkpoints.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_GRAPH_METAGRAPH_DIFF_H_
#define LOCKSTEP_COMMON_GRAPH_METAGRAPH_DIFF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// One line for each difference between two stored metagraphs (common/graph/serialize.h), which may be of other program
// versions: elements that only one of them has, and fields with both values, as in
// `forward.variables[fc3.weight].shape: [10, 84] -> [100, 84]`. Variables, constants, nodes and inputs are compared by
// name, nodes in any order. Empty when they are equal. InvalidArgument when one of them is no metagraph.
absl::StatusOr<std::vector<std::string>> DiffMetaGraphs(absl::string_view before, absl::string_view after);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_METAGRAPH_DIFF_H_
