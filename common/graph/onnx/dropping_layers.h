// Layers that an exporter spelled out and that PyTorch's eval() turns into the identity: Dropout2d, AlphaDropout,
// StochasticDepth, DropPath and the like. A file does not say so of a node; it names the class of each layer.
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

// The results of such layers, and for each the values that enter its layer: one of them is what the layer drops from,
// the others are constants. A layer counts whose class is called "...Dropout" (or Dropout1d, 2d, 3d), "...DropPath" or
// "StochasticDepth", that draws random numbers, gives one value, and does nothing but scale, shift and choose.
// `outputs` are the model's.
std::map<std::string, std::vector<std::string>> FindDroppingLayers(const onnx::GraphProto& nodes,
                                                                   const std::set<std::string>& outputs);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_DROPPING_LAYERS_H_
