// What an op's gradient function works with: it reads the forward node and the gradients of its outputs, appends nodes
// to the graph, and sets the gradients of the inputs. Emitted nodes and values are called
// "lockstep.grad.<node>.<suffix>". A suffix is a word or two words with a dot between, and no op uses a second word
// alone, so that no two nodes of a graph can emit the same name.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_GRADIENT_BUILDER_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_GRADIENT_BUILDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

class GradientBuilder {
 public:
  // `graph` holds inferred values for everything that stands in it. `output_gradients` has an entry per output, empty
  // where the loss does not depend on it; `needs` says per input whether its gradient is wanted.
  GradientBuilder(Graph* graph, const Node& node, std::vector<std::string> output_gradients, std::vector<bool> needs);

  const Node& node() const { return node_; }
  bool HasInput(size_t i) const { return i < node_.inputs.size() && !node_.inputs[i].empty(); }
  const std::string& Input(size_t i) const { return node_.inputs[i]; }
  const std::string& Output(size_t i) const { return node_.outputs[i]; }
  const ValueInfo& InputInfo(size_t i) const { return Info(node_.inputs[i]); }
  const ValueInfo& OutputInfo(size_t i) const { return Info(node_.outputs[i]); }
  const ValueInfo& Info(const std::string& value) const;
  // Whether input i is there and its gradient wanted.
  bool Needs(size_t i) const { return HasInput(i) && needs_[i]; }
  // The gradient of output i; empty where the loss does not depend on it.
  const std::string& OutputGradient(size_t i) const { return output_gradients_[i]; }

  // Appends a node with one output and returns the output's name. After a failure, such as a gradient with more
  // elements or dimensions than a tensor can have, nothing more is added: `status` keeps the first failure, and the
  // names returned mean nothing.
  std::string Emit(const std::string& suffix, OpType op, std::vector<std::string> inputs,
                   OpAttributes attributes = NoAttributes{});

  // The same with several outputs, "lockstep.grad.<node>.<suffix>" for each suffix.
  std::vector<std::string> EmitMany(const std::string& name_suffix, OpType op, std::vector<std::string> inputs,
                                    const std::vector<std::string>& output_suffixes, OpAttributes attributes);

  // The gradient of a broadcast: `value` summed down to `shape`.
  std::string ReduceTo(const std::string& suffix, const std::string& value, const Shape& shape);

  // `value` itself, or reshaped where its shape differs.
  std::string ReshapeTo(const std::string& suffix, const std::string& value, const Shape& shape);

  const absl::Status& status() const { return status_; }

  void SetInputGradient(size_t i, std::string value) { input_gradients_[i] = std::move(value); }
  // An entry per input; empty where none was set.
  const std::vector<std::string>& input_gradients() const { return input_gradients_; }

 private:
  Graph* graph_;
  absl::Status status_;
  const Node node_;
  std::vector<std::string> output_gradients_;
  std::vector<bool> needs_;
  std::vector<std::string> input_gradients_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_GRADIENT_BUILDER_H_
