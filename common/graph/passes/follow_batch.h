// Shapes that nodes state as numbers, though they follow the batch: importers know a model for one batch alone.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_FOLLOW_BATCH_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_FOLLOW_BATCH_H_

#include <cstdint>

#include "common/graph/ops/ir.h"

namespace lockstep {

// Makes the shapes of Reshape, Expand and random numbers, and the equal parts of a Split, follow other batches where
// they may hold `batch`, for which nothing changes. A constant that repeats one row for each sample, such as a state
// that begins with zeros, becomes that row where an op works element by element. Whatever else states the batch keeps
// the number. REQUIRES: the graph's inputs begin with kBatchDim.
void FollowBatch(Graph* graph, int64_t batch);

// The same where the other batch is known: if it has fewer samples, constant labels of a loss, as those of one that
// finds each sample's partner, are cut to so many. REQUIRES: the model does not compute with its batch (UseOfBatch), so
// that the first labels are those of the smaller one.
void FollowOtherBatch(Graph* graph, int64_t batch, int64_t other);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_FOLLOW_BATCH_H_
