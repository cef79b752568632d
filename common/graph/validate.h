// The invariants of a metagraph, checked before it is stored and after it was read.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_VALIDATE_H_
#define LOCKSTEP_COMMON_GRAPH_VALIDATE_H_

#include "absl/status/status.h"
#include "common/graph/metagraph.h"

namespace lockstep {

// InvalidArgument unless every value has one producer and its readers stand after it, names are unique and not reserved
// (the prefixes "lockstep.", "grad." and "stat." belong to derived graphs), and every variable has a valid InitRule.
absl::Status ValidateForwardGraph(const Graph& graph);

// InvalidArgument unless the forward graph is valid, the signature fits the graph's inputs, loss and update are in
// range, and the names of the state are unique. It does not infer shapes: deriving a training graph does.
absl::Status ValidateMetaGraph(const MetaGraph& metagraph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_VALIDATE_H_
