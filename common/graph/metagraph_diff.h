// What two metagraphs differ in, for people: why a job does not go on from another one's checkpoints.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_GRAPH_METAGRAPH_DIFF_H_
#define LOCKSTEP_COMMON_GRAPH_METAGRAPH_DIFF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// One line for each difference between stored metagraphs (common/graph/serialize.h), also of programs of another
// version: what is in one of them alone, and fields with both values, as
// `forward.variables[fc3.weight].shape: [10, 84] -> [100, 84]`. Variables, constants, nodes and inputs are compared by
// name, nodes in any order. Empty: they are the same. InvalidArgument: one of them is no metagraph.
absl::StatusOr<std::vector<std::string>> DiffMetaGraphs(absl::string_view before, absl::string_view after);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_METAGRAPH_DIFF_H_
