#include "common/graph/graph_editor.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::Status AddValue(Graph* graph, const std::string& name, const ValueInfo& info) {
  LS_RETURN_IF_ERROR(CheckedByteSize(info.dtype, info.shape).status());
  if (graph->values.emplace(name, info).second) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the value '", name, "' exists twice"));
}

void Replace(std::vector<std::string>* names, const std::string& from, const std::string& to) {
  std::replace(names->begin(), names->end(), from, to);
}

}  // namespace

std::string FreshName(const Graph& graph, std::string name) {
  const auto taken = [&] {
    const auto is_it = [&](const auto& entry) { return entry.name == name; };
    return std::any_of(graph.inputs.begin(), graph.inputs.end(), is_it) ||
           std::any_of(graph.variables.begin(), graph.variables.end(), is_it) ||
           std::any_of(graph.constants.begin(), graph.constants.end(), is_it) ||
           std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
             return std::count(node.outputs.begin(), node.outputs.end(), name) != 0;
           });
  };
  while (taken()) name += "_";
  return name;
}

void BindBatch(Graph* graph, int64_t batch) {
  for (GraphInput& input : graph->inputs) {
    if (!input.shape.empty() && input.shape[0] == kBatchDim) input.shape[0] = batch;
  }
}

int64_t OnlyBatch(const Graph& graph) {
  for (const GraphInput& input : graph.inputs) {
    if (!input.shape.empty()) return input.shape[0] == kBatchDim ? 0 : input.shape[0];
  }
  return 0;
}

absl::Status InferShapes(Graph* graph) {
  graph->values.clear();
  for (const GraphInput& input : graph->inputs) {
    LS_RETURN_IF_ERROR(AddValue(graph, input.name, {input.dtype, input.shape}));
  }
  for (const Variable& variable : graph->variables) {
    LS_RETURN_IF_ERROR(AddValue(graph, variable.name, {variable.dtype, variable.shape}));
  }
  for (const Constant& constant : graph->constants) {
    LS_RETURN_IF_ERROR(AddValue(graph, constant.name, {constant.value->dtype(), constant.value->shape()}));
  }
  std::vector<Node> nodes = std::move(graph->nodes);
  graph->nodes.clear();
  for (Node& node : nodes) LS_RETURN_IF_ERROR(AppendNode(graph, std::move(node)));
  return absl::OkStatus();
}

void AppendInput(Graph* graph, GraphInput input) {
  const bool added = graph->values.emplace(input.name, ValueInfo{input.dtype, input.shape}).second;
  LS_CHECK(added, "names of inputs are new");
  graph->inputs.push_back(std::move(input));
}

void AppendConstant(Graph* graph, const std::string& name, Tensor value) {
  const bool added = graph->values.emplace(name, ValueInfo{value.dtype(), value.shape()}).second;
  LS_CHECK(added, "names of constants are new");
  graph->constants.push_back({name, std::make_shared<const Tensor>(std::move(value))});
}

void RenameValue(Graph* graph, const std::string& from, const std::string& to) {
  for (Node& node : graph->nodes) {
    Replace(&node.inputs, from, to);
    Replace(&node.outputs, from, to);
  }
  Replace(&graph->outputs, from, to);
  auto entry = graph->values.extract(from);
  if (entry.empty()) return;
  entry.key() = to;
  LS_CHECK(graph->values.insert(std::move(entry)).inserted, "a value gets a name that is not taken");
}

void ReplaceReads(Graph* graph, const std::string& from, const std::string& to) {
  for (Node& node : graph->nodes) Replace(&node.inputs, from, to);
  Replace(&graph->outputs, from, to);
}

void RemoveDeadCode(Graph* graph) {
  std::set<std::string> live(graph->outputs.begin(), graph->outputs.end());
  std::vector<Node> kept;
  for (size_t i = graph->nodes.size(); i-- > 0;) {
    Node& node = graph->nodes[i];
    const bool needed = std::any_of(node.outputs.begin(), node.outputs.end(),
                                    [&](const auto& output) { return !output.empty() && live.count(output) != 0; });
    if (needed) {
      live.insert(node.inputs.begin(), node.inputs.end());
      kept.push_back(std::move(node));
    } else {
      for (const std::string& output : node.outputs) graph->values.erase(output);
    }
  }
  std::reverse(kept.begin(), kept.end());
  graph->nodes = std::move(kept);
  std::vector<Constant> constants;
  for (Constant& constant : graph->constants) {
    if (live.count(constant.name) != 0) {
      constants.push_back(std::move(constant));
    } else {
      graph->values.erase(constant.name);
    }
  }
  graph->constants = std::move(constants);
}

}  // namespace lockstep
