// Makes the batch of a graph symbolic again. Where a model computes with its batch size, the imported graph's
// attributes hold a fixed number, and the graph runs for that batch alone.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_OPEN_BATCH_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_OPEN_BATCH_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// A dimension that depends on the batch but is not the batch itself.
inline constexpr int64_t kUnknownDim = -2;

struct BatchOpening {
  // Bound to the given batch, with inferred shapes. When `open`, shapes that nodes state follow it (FollowBatch); else
  // the nodes are unchanged.
  Graph graph;
  bool open = false;
  // Shapes of the graph's inputs and outputs when `open`, with kBatchDim and kUnknownDim.
  std::map<std::string, Shape> shapes;
};

// InvalidArgument when shape inference fails for the given batch. REQUIRES: batch >= 1.
absl::StatusOr<BatchOpening> OpenBatch(const Graph& graph, int64_t batch);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_OPEN_BATCH_H_
