// Takes the batch out of a graph that was read for one: where a model computes with its batch, attributes hold the
// number, and the graph runs for that batch alone.
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

// What of a shape follows the batch.
inline constexpr int64_t kUnknownDim = -2;

struct BatchOpening {
  // With inferred shapes for the batch that was given, inputs included. Where `open`, leading dimensions in the shapes
  // of reshapes are left to be found, and those of random numbers follow an input; else nothing was changed.
  Graph graph;
  bool open = false;
  // Of the graph's inputs and outputs when `open`: kBatchDim for the batch, kUnknownDim for what else depends on it.
  std::map<std::string, Shape> shapes;
};

// InvalidArgument when not even the given batch fits. REQUIRES: batch >= 1.
absl::StatusOr<BatchOpening> OpenBatch(const Graph& graph, int64_t batch);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_OPEN_BATCH_H_
