// Stage 2: the model, loss and update sections of a job, as plain structs, become a metagraph. The one place that knows
// the built-in architectures by name.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_BUILD_METAGRAPH_H_
#define LOCKSTEP_COMMON_GRAPH_BUILD_METAGRAPH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/builtin/builtin.h"
#include "common/graph/metagraph.h"

namespace lockstep {

struct MetaGraphRequest {
  ModelSpec model;
  // An imported forward graph, which then counts instead of `model`.
  std::optional<Graph> imported;
  // Exactly one feature and one label input; shapes begin with kBatchDim.
  std::vector<SignatureInput> inputs;
  // `output` and `label` may be empty: then the model's only output and the only label input are meant.
  LossRule loss;
  UpdateRule update;
  int64_t pass_batch = 0;
};

// The metagraph of a job: validated, with the training graph derived once to see that it can be. InvalidArgument says
// which setting or node does not fit and what to change.
absl::StatusOr<MetaGraph> BuildMetaGraph(const MetaGraphRequest& request);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_BUILD_METAGRAPH_H_
