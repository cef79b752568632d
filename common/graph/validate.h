// The invariants of a metagraph, checked before it is stored and after it was read.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_VALIDATE_H_
#define LOCKSTEP_COMMON_GRAPH_VALIDATE_H_

#include "absl/status/status.h"
#include "common/graph/metagraph.h"

namespace lockstep {

// InvalidArgument unless every value has one producer and every reader stands behind it, names are unique and not
// reserved ("lockstep.", "grad." and "stat." in front belong to derived graphs), and variables can begin.
absl::Status ValidateForwardGraph(const Graph& graph);

// The forward graph, the signature against the graph's inputs, the ranges of loss and update, and that the names of the
// state are unique. It does not infer shapes: deriving a training graph does.
absl::Status ValidateMetaGraph(const MetaGraph& metagraph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_VALIDATE_H_
