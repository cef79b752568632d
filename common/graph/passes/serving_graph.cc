#include "common/graph/passes/serving_graph.h"

#include <algorithm>
#include <set>
#include <string>

#include "common/graph/graph_editor.h"
#include "common/graph/passes/forms.h"

namespace lockstep {
namespace {

bool IsLabel(const MetaGraph& metagraph, const std::string& input) {
  return std::any_of(metagraph.signature.begin(), metagraph.signature.end(),
                     [&](const SignatureInput& s) { return s.name == input && s.role == InputRole::kLabel; });
}

}  // namespace

Graph MakeServingGraph(const MetaGraph& metagraph) {
  Graph graph = metagraph.forward;
  if (metagraph.loss.kind == LossKind::kGraphOutput && graph.outputs.size() > 1) {
    std::erase(graph.outputs, metagraph.loss.output);
  }
  UseEvaluationForms(&graph);
  RemoveDeadCode(&graph);
  std::set<std::string> read(graph.outputs.begin(), graph.outputs.end());
  std::set<std::string> given;
  for (const Node& node : graph.nodes) {
    read.insert(node.inputs.begin(), node.inputs.end());
    given.insert(node.outputs.begin(), node.outputs.end());
  }
  std::erase_if(graph.inputs,
                [&](const GraphInput& i) { return IsLabel(metagraph, i.name) && read.count(i.name) == 0; });
  std::erase_if(graph.variables, [&](const Variable& v) { return read.count(v.name) == 0; });
  for (std::string& output : graph.outputs) {
    if (given.count(output) != 0) continue;
    std::string copy = FreshName(graph, output + ".output");
    const auto is_it = [&](const Node& node) { return node.name == copy; };
    while (std::any_of(graph.nodes.begin(), graph.nodes.end(), is_it)) copy = FreshName(graph, copy + "_");
    graph.nodes.push_back({copy, OpType::kIdentity, {output}, {copy}, NoAttributes{}});
    output = copy;
  }
  return graph;
}

}  // namespace lockstep
