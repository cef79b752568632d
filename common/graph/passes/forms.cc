#include "common/graph/passes/forms.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/moved_statistics.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

bool IsStatistic(const Graph& graph, const std::string& name) {
  return std::any_of(graph.variables.begin(), graph.variables.end(), [&](const Variable& variable) {
    return variable.name == name && variable.kind == VariableKind::kStatistic;
  });
}

bool IsRead(const Graph& graph, const std::string& value) {
  const auto reads = [&](const Node& node) {
    return std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end();
  };
  return std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end() ||
         std::any_of(graph.nodes.begin(), graph.nodes.end(), reads);
}

bool KeepsLogProb(const Graph& graph, const Node& cross_entropy) {
  const auto& outputs = cross_entropy.outputs;
  return outputs.size() > 1 && !outputs[1].empty() && IsRead(graph, outputs[1]);
}

// Removes the dropouts that `drop` accepts and whose mask nobody reads; their readers read their input.
template <typename Predicate>
void RemoveDropouts(Graph* graph, Predicate drop) {
  for (size_t i = 0; i < graph->nodes.size();) {
    const Node node = graph->nodes[i];
    if (node.op != OpType::kDropout || !drop(std::get<DropoutAttributes>(node.attributes))) {
      ++i;
      continue;
    }
    if (node.outputs.size() > 1 && !node.outputs[1].empty() && IsRead(*graph, node.outputs[1])) {
      ++i;
      continue;
    }
    graph->nodes.erase(graph->nodes.begin() + static_cast<std::ptrdiff_t>(i));
    ReplaceReads(graph, node.outputs[0], node.inputs[0]);
  }
}

// Where other nodes spell out what training reads in place of a dropout, its readers read that.
void ReadDropped(Graph* graph) {
  for (size_t i = 0; i < graph->nodes.size();) {
    const Node node = graph->nodes[i];
    if (node.op != OpType::kDropout || node.inputs.size() < 2) {
      ++i;
      continue;
    }
    graph->nodes.erase(graph->nodes.begin() + static_cast<std::ptrdiff_t>(i));
    ReplaceReads(graph, node.outputs[0], node.inputs[1]);
  }
}

bool Draws(OpType op) { return op == OpType::kUniformLike || op == OpType::kNormalLike; }

// Nothing is differentiated: readers of an Identity, where gradients would stop, read what it reads.
void RemoveStops(Graph* graph) {
  const auto stops = [&](const Node& node) {
    return node.op == OpType::kIdentity &&
           std::count(graph->outputs.begin(), graph->outputs.end(), node.outputs[0]) == 0;
  };
  std::map<std::string, std::string> sources;
  for (Node& node : graph->nodes) {
    for (std::string& input : node.inputs) {
      if (const auto found = sources.find(input); found != sources.end()) input = found->second;
    }
    if (stops(node)) sources[node.outputs[0]] = node.inputs[0];
  }
  std::erase_if(graph->nodes, stops);
}

// Turns the node into BatchNormTraining and notes how its statistics move.
absl::Status NormaliseByBatch(const Graph& graph, Node* node, std::set<std::string>* taken,
                              std::vector<StatisticUpdate>* statistics) {
  if (node->inputs.size() != 5) return absl::OkStatus();  // shape inference names the error
  const double momentum = std::get<BatchNormAttributes>(node->attributes).momentum;
  std::vector<std::string> values;
  for (const std::string& variable : {node->inputs[3], node->inputs[4]}) {
    if (!IsStatistic(graph, variable) || !taken->insert(variable).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodeLabel(*node), ": trains, so '", variable,
                       "' has to be a running statistic of this node alone; otherwise freeze the node"));
    }
    values.push_back(MovedValueName(variable));
    statistics->push_back({variable, values.back(), momentum});
  }
  node->op = OpType::kBatchNormTraining;
  node->inputs.resize(3);
  node->outputs = {node->outputs[0], values[0], absl::StrCat("lockstep.form.", node->name, ".inv_std"), values[1]};
  return absl::OkStatus();
}

// Names the outputs of a LayerNormalization that its gradient reads and nobody asked for.
void AskForStatistics(const std::string& prefix, Node* node) {
  node->outputs.resize(3);
  if (node->outputs[1].empty()) node->outputs[1] = prefix + ".mean";
  if (node->outputs[2].empty()) node->outputs[2] = prefix + ".inv_std";
}

}  // namespace

absl::StatusOr<TrainingForms> UseTrainingForms(Graph* graph) {
  TrainingForms forms;
  std::set<std::string> taken;
  ReadDropped(graph);
  RemoveDropouts(graph, [](const DropoutAttributes& d) { return !d.training_mode || d.ratio == 0.0; });
  for (Node& node : graph->nodes) {
    const std::string prefix = absl::StrCat("lockstep.form.", node.name);
    if (node.op == OpType::kMaxPool) {
      node.op = OpType::kMaxPoolWithArgmax;
      node.outputs.push_back(prefix + ".argmax");
    } else if (node.op == OpType::kDropout && std::get<DropoutAttributes>(node.attributes).training_mode) {
      node.op = OpType::kDropoutTraining;
      node.inputs.push_back(kRandomInput);
      node.outputs.resize(2);
      if (node.outputs[1].empty()) node.outputs[1] = prefix + ".mask";
    } else if (node.op == OpType::kSoftmaxCrossEntropyLoss && !KeepsLogProb(*graph, node)) {
      node.outputs = {node.outputs[0], "", prefix + ".statistics"};
    } else if (node.op == OpType::kTopK && node.outputs.size() == 2 && node.outputs[1].empty()) {
      node.outputs[1] = prefix + ".indices";
    } else if (node.op == OpType::kLayerNormalization) {
      AskForStatistics(prefix, &node);
    } else if (node.op == OpType::kBatchNormalization && std::get<BatchNormAttributes>(node.attributes).training_mode) {
      LS_RETURN_IF_ERROR(NormaliseByBatch(*graph, &node, &taken, &forms.statistics));
    }
  }
  FeedRandomNumbers(graph);
  return forms;
}

void FeedRandomNumbers(Graph* graph) {
  bool reads = false;
  for (Node& node : graph->nodes) {
    if (Draws(node.op)) {
      node.inputs.resize(1);
      node.inputs.emplace_back(kRandomInput);
    }
    reads = reads || std::count(node.inputs.begin(), node.inputs.end(), kRandomInput) != 0;
  }
  if (reads) graph->inputs.push_back({kRandomInput, DType::kI64, {4}});
}

void MakeRandomShapesExplicit(Graph* graph) {
  for (Node& node : graph->nodes) {
    if (!Draws(node.op)) continue;
    std::get<RandomLikeAttributes>(node.attributes).shape = graph->values.at(node.outputs[0]).shape;
    node.inputs[0].clear();
  }
}

void UseEvaluationForms(Graph* graph) {
  RemoveDropouts(graph, [](const DropoutAttributes&) { return true; });
  RemoveStops(graph);
  for (Node& node : graph->nodes) {
    if (node.op == OpType::kSoftmaxCrossEntropyLoss && !KeepsLogProb(*graph, node)) node.outputs.resize(1);
    if (node.op == OpType::kBatchNormalization) {
      std::get<BatchNormAttributes>(node.attributes).training_mode = false;
    }
  }
}

}  // namespace lockstep
