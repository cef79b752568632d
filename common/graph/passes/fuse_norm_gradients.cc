#include "common/graph/passes/fuse_norm_gradients.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace lockstep {
namespace {

// Inputs in front of dSum; 0 for other ops.
size_t InputsBefore(OpType op) { return op == OpType::kLayerNormGrad ? 5 : op == OpType::kRmsNormGrad ? 3 : 0; }

// Which node produces a value; -1 for what no node does.
class Producers {
 public:
  explicit Producers(const Graph& graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const std::string& output : graph.nodes[i].outputs) by_value_[output] = static_cast<int>(i);
      for (const std::string& input : graph.nodes[i].inputs) ++reads_[input];
    }
    for (const std::string& output : graph.outputs) ++reads_[output];
  }
  int Of(const std::string& value) const {
    const auto found = by_value_.find(value);
    return found == by_value_.end() ? -1 : found->second;
  }
  int Reads(const std::string& value) const {
    const auto found = reads_.find(value);
    return found == reads_.end() ? 0 : found->second;
  }

 private:
  std::map<std::string, int> by_value_;
  std::map<std::string, int> reads_;
};

}  // namespace

int FuseNormGradients(Graph* graph) {
  const Producers producers(*graph);
  std::vector<bool> gone(graph->nodes.size(), false);
  int found = 0;
  for (size_t at = 0; at < graph->nodes.size(); ++at) {
    const Node add = graph->nodes[at];
    if (add.op != OpType::kAdd) continue;
    for (const size_t side : {0, 1}) {
      const std::string& dx = add.inputs[side];
      const std::string& dsum = add.inputs[1 - side];
      const int grad = producers.Of(dx);
      if (grad < 0 || producers.Of(dsum) >= grad || producers.Reads(dx) != 1) continue;
      Node& norm = graph->nodes[static_cast<size_t>(grad)];
      const size_t before = InputsBefore(norm.op);
      if (before == 0 || norm.outputs[0] != dx || norm.inputs.size() > before) continue;
      if (graph->values.at(dsum) != graph->values.at(dx)) continue;
      norm.inputs.resize(before);
      norm.inputs.push_back(dsum);
      norm.outputs[0] = add.outputs[0];
      graph->values.erase(dx);
      gone[at] = true;
      ++found;
      break;
    }
  }
  std::vector<Node> kept;
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    if (!gone[i]) kept.push_back(std::move(graph->nodes[i]));
  }
  graph->nodes = std::move(kept);
  return found;
}

}  // namespace lockstep
