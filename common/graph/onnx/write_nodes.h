// Writes the nodes of a graph in ONNX's own operators: attributes that ONNX takes as inputs become constants, and ops
// of the lockstep domain become the ONNX nodes that they stand for.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_WRITE_NODES_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_WRITE_NODES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/graph/ops/ir.h"
#include "common/tensor/tensor.h"
#include "protos/onnx.pb.h"

namespace lockstep {

// Appends the graph's constants and nodes and returns the lowest opset, from 20 on, that has them all. Constants are
// written as nodes, not as initialisers, so that no reader takes them for parameters. InvalidArgument names the node
// that ONNX has no op for. REQUIRES: the shapes of `graph` are inferred.
absl::StatusOr<int64_t> WriteOnnxNodes(const Graph& graph, onnx::GraphProto* to);

// Writes name, type and shape of a tensor, but not its elements.
void WriteOnnxTensorSpec(const std::string& name, DType dtype, const Shape& shape, onnx::TensorProto* to);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_WRITE_NODES_H_
