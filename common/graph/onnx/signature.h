// What PyTorch's exporter writes about a model's inputs beside the graph: which are parameters, which are buffers.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_SIGNATURE_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_SIGNATURE_H_

#include <optional>
#include <set>
#include <string>

#include "protos/onnx.pb.h"

namespace lockstep {

struct OnnxSignature {
  std::set<std::string> parameters;  // by their names in the state dict
  std::set<std::string> buffers;     // persistent ones alike
};

// Nothing where the exporter left none: the older exporter, other tools.
std::optional<OnnxSignature> FindSignature(const onnx::ModelProto& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_SIGNATURE_H_
