// Traces an operand of attention back to the value that the model computed, through transposes, factors and
// repetitions.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_ATTENTION_SOURCE_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_ATTENTION_SOURCE_H_

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/graph/ops/ir.h"

namespace lockstep {

// Index of the producers and readers of a graph's values; dead nodes do not count as readers. Holds pointers to the
// graph's nodes: valid while they stay where they are.
class GraphIndex {
 public:
  explicit GraphIndex(const Graph& graph);

  const Shape& ShapeOf(const std::string& value) const { return graph_.values.at(value).shape; }
  // The node that computes a value; null for inputs, variables, constants and outputs of dead nodes.
  const Node* Producer(const std::string& value) const;
  // The node that reads the value, when exactly one node does, once, and the value is no output of the graph; else
  // null.
  const Node* OnlyReader(const std::string& value) const;
  const Tensor* ConstantOf(const std::string& value) const;
  // The number that a constant of one element holds.
  std::optional<double> NumberOf(const std::string& value) const;
  // True when gradients flow from the value to a parameter; Identity stops them.
  bool IsTrained(const std::string& value) const { return trained_.count(value) > 0; }
  bool IsLive(const Node& node) const { return live_.count(&node) > 0; }

 private:
  const Graph& graph_;
  std::map<std::string, const Node*> producers_;
  std::map<std::string, std::vector<const Node*>> readers_;
  std::map<std::string, const Tensor*> constants_;
  std::set<std::string> trained_;
  std::set<std::string> outputs_;
  std::set<const Node*> live_;
};

// An operand is `factor` times `value`; with `rows`, `value` has the operand's second and third dimension exchanged.
struct AttentionSource {
  std::string value;
  bool rows = false;
  double factor = 1.0;
};

// Where an operand [batch, heads, length, size] comes from. `place` says which of the operand's dimensions stands for
// each of these four; `repeated`: whether heads may be repetitions of fewer ones. nullopt when no value on the way has
// either layout.
std::optional<AttentionSource> FindAttentionSource(const GraphIndex& index, const std::string& operand,
                                                   std::array<size_t, 4> place, bool repeated);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_ATTENTION_SOURCE_H_
