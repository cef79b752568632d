// The metadata that PyTorch's exporter writes beside the graph: which inputs of the exported program are parameters,
// buffers and constants, which buffers `forward` changes, and which call of the program each node comes from.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_SIGNATURE_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_SIGNATURE_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "protos/onnx.pb.h"

namespace lockstep {

struct OnnxSignature {
  std::set<std::string> parameters;  // by their names in the state dict
  std::set<std::string> buffers;     // persistent ones, likewise
  std::set<std::string> constants;   // buffers that the state dict leaves out, and other tensors of the model
  // Parameter name -> its placeholder in the calls that NodeCall returns.
  std::map<std::string, std::string> placeholders;
  // The same for buffers and constants.
  std::map<std::string, std::string> buffer_placeholders;
  // Buffers that `forward` changes -> the values that hold their new content.
  std::map<std::string, std::string> mutations;
  std::set<std::string> changed_parameters;  // parameters that `forward` itself changes

  // Whether the model, and not the exporter, has a tensor of this name.
  bool Knows(const std::string& name) const {
    return parameters.count(name) != 0 || buffers.count(name) != 0 || constants.count(name) != 0;
  }
};

// nullopt when the file has no such metadata: files of the older exporter and of other tools.
std::optional<OnnxSignature> FindSignature(const onnx::ModelProto& model);

// The call of the exported program that the node comes from: "%detach : ... call_function[target=...](args = (%sub,),
// ...". Empty where the exporter left none.
absl::string_view NodeCall(const onnx::NodeProto& node);

// The arguments of such a call in their order: "%x", "[16]", "None".
std::vector<std::string> CallArguments(absl::string_view call);

// Those of the arguments that are values of the program, without the "%".
std::vector<std::string> ValuesOf(const std::vector<std::string>& arguments);

// The layer that made the call, by its name in the model: "encoder.0.linear". Empty where the exporter left none, and
// for calls of the model itself.
std::string NodeLayer(const onnx::NodeProto& node);

// The layers around the node's call, from the model (whose name is empty) inwards. Empty where the exporter left none.
struct LayerOfNode {
  std::string name;  // in the model: "encoder.0.drop"
  std::string type;  // its class: "torch.nn.modules.dropout.Dropout2d"
};
std::vector<LayerOfNode> LayersOf(const onnx::NodeProto& node);

// Whether the call takes the program's value `placeholder`.
bool CallTakes(absl::string_view call, absl::string_view placeholder);

// Whether the node comes from a call of Tensor.detach().
bool CallsDetach(const onnx::NodeProto& node);

// Whether the node comes from a block that the exporter traces apart and then inlines: torch.no_grad(),
// torch.autocast() and the like. The file does not say which of them it was.
bool ComesFromBlock(const onnx::NodeProto& node);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_SIGNATURE_H_
