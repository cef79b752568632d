// The graph that a trained model predicts with, ready to be planned.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_PREDICTION_GRAPH_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_PREDICTION_GRAPH_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"

namespace lockstep {

// The output that `asked` names; when `asked` is empty, the one that the loss compares with the labels, else the first
// that is not the loss. InvalidArgument lists the outputs when there is no such output.
absl::StatusOr<std::string> ChoosePrediction(const MetaGraph& metagraph, const std::string& asked);

// The graph of one pass of `batch` samples whose only output is `output`, one row per sample, in the model's precision;
// shapes are inferred. Its inputs are those of the features that the output depends on, with kRandomInput where the
// model draws. InvalidArgument when the model does not compute with such a batch, or the output has no row per sample.
absl::StatusOr<Graph> MakePredictionGraph(const MetaGraph& metagraph, const std::string& output, int64_t batch);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_PREDICTION_GRAPH_H_
