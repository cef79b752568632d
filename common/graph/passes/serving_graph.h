// The graph that answers with a trained model: nothing is dropped, batches are normalised by running statistics, labels
// and the loss are gone.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_SERVING_GRAPH_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_SERVING_GRAPH_H_

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"

namespace lockstep {

// The forward graph with the batch unbound; variables that no output depends on are left out. An output that is the
// loss goes, unless it is the only one. Every output is given by a node.
Graph MakeServingGraph(const MetaGraph& metagraph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_SERVING_GRAPH_H_
