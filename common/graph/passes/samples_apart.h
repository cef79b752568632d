// Follows the samples of a batch through a graph. They meet in a mean over the batch, in a loss that compares each with
// all others, in the condition of a loop over all of it.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_SAMPLES_APART_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_SAMPLES_APART_H_

#include <cstdint>
#include <map>
#include <string>

#include "common/graph/ops/ir.h"

namespace lockstep {

// Where the samples of the batch lie in a value: dimension `axis` has outer * batch * inner entries, and entry i is of
// sample i / inner % batch.
struct SampleAxis {
  int64_t axis = 0;
  int64_t outer = 1;
  int64_t inner = 1;
  friend bool operator==(const SampleAxis&, const SampleAxis&) = default;
};

// True when what the graph gives for a sample depends on that sample alone, and not on who stands beside it in the
// batch. `graph` is one of MakeEvaluationGraph or MakePredictionGraph for `batch` samples: each of its inputs counts
// them in its first dimension. What counts are its masked sums and counts; if it has none, its outputs. False where
// this cannot be shown: ops that write by index are not followed. REQUIRES: shapes are inferred.
bool SamplesAreApart(const Graph& graph, int64_t batch);

// The values in which each sample has entries of its own, and where. In others there are no samples, or they have met.
// REQUIRES: as SamplesAreApart, and batch >= 2.
std::map<std::string, SampleAxis> FindSamples(const Graph& graph, int64_t batch);

// True when the first dimension of `value` counts rows of one sample after those of another, equally many of each.
// False where this cannot be shown. REQUIRES: as SamplesAreApart.
bool RowsFollowSamples(const Graph& graph, const std::string& value, int64_t batch);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_SAMPLES_APART_H_
