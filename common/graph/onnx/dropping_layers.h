// Finds layers that PyTorch's eval() turns into the identity (Dropout2d, AlphaDropout, StochasticDepth, DropPath and
// the like) and that the exporter wrote out as primitive nodes. A file does not mark such nodes, but it names the class
// of the layer that each node comes from.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_DROPPING_LAYERS_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_DROPPING_LAYERS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "protos/onnx.pb.h"

namespace lockstep {

// Maps the result of each such layer to the values that enter the layer: the one that is dropped from, and constants. A
// layer is recognised by its class, named "...Dropout" (or Dropout1d, 2d, 3d), "...DropPath" or "StochasticDepth"; it
// must also draw random numbers, have one result, and only scale, shift and select. `outputs` are the model's.
std::map<std::string, std::vector<std::string>> FindDroppingLayers(const onnx::GraphProto& nodes,
                                                                   const std::set<std::string>& outputs);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_DROPPING_LAYERS_H_
