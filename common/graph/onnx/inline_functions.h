// Exporters write parts of a model as functions: named lists of nodes that are called like ops. The importer knows ops
// alone, so calls are replaced by what they call.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_INLINE_FUNCTIONS_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_INLINE_FUNCTIONS_H_

#include "absl/status/statusor.h"
#include "protos/onnx.pb.h"

namespace lockstep {

// The nodes of a model with every call of its own functions, also within functions, replaced by what it calls; nothing
// else of its graph. Values inside a call are named "<name of the call>/<name in the function>". InvalidArgument for
// functions that call themselves, for calls with more inputs or outputs than the function has, for functions of
// another opset than the model, and for functions that make more than 2^20 nodes or 1 GiB.
absl::StatusOr<onnx::GraphProto> InlineFunctions(const onnx::ModelProto& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_INLINE_FUNCTIONS_H_
