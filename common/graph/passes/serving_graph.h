// The graph that serves a trained model: without dropout, labels and loss, and with running statistics in batch
// normalisations.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_SERVING_GRAPH_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_SERVING_GRAPH_H_

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"

namespace lockstep {

// The forward graph with the batch unbound; variables that no output depends on are left out. An output that is the
// loss is removed, unless it is the only one. A node produces every output.
Graph MakeServingGraph(const MetaGraph& metagraph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_SERVING_GRAPH_H_
