#include "common/graph/training_account.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/graph/moved_statistics.h"
#include "common/graph/state_names.h"

namespace lockstep {
namespace {

std::string Counted(size_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// A variable by what becomes of it.
struct Sorted {
  std::vector<std::string> trained, chosen, behind_stops, unread, buffers;
  int64_t values = 0;  // trained
};

Sorted Sort(const MetaGraph& metagraph, const ImportNotes* imported) {
  const Graph& graph = metagraph.forward;
  const std::set<std::string> reached = ReachedFrom(graph, metagraph.loss.output, false);
  const std::set<std::string> read = ReachedFrom(graph, metagraph.loss.output, true);
  std::set<std::string> statistics;
  for (const Node& node : graph.nodes) {
    if (node.op == OpType::kBatchNormalization) statistics.insert({node.inputs[3], node.inputs[4]});
  }
  Sorted sorted;
  for (const Variable& variable : graph.variables) {
    const std::string& name = variable.name;
    if (variable.kind == VariableKind::kParameter) {
      sorted.trained.push_back(name);
      sorted.values += NumElements(variable.shape);
    }
    if (variable.kind != VariableKind::kFrozen || statistics.count(name) != 0) continue;
    if (imported != nullptr && imported->parameters.count(name) == 0) {
      if (!absl::EndsWith(name, "num_batches_tracked")) sorted.buffers.push_back(name);
    } else if (read.count(name) == 0) {
      sorted.unread.push_back(name);
    } else {
      (reached.count(name) == 0 ? sorted.behind_stops : sorted.chosen).push_back(name);
    }
  }
  return sorted;
}

AccountLine Trained(const Sorted& sorted, const ImportNotes* imported) {
  const size_t kept = sorted.chosen.size() + sorted.behind_stops.size() + sorted.unread.size();
  std::string text =
      absl::StrCat(kept == 0 ? "all " : "", kept == 0 ? "" : absl::StrCat(sorted.trained.size(), " of "),
                   Counted(sorted.trained.size() + kept, "parameter"), ", ", Counted(sorted.values, "value"));
  // Where fewer are trained than kept, these are what one wants to see.
  if (sorted.trained.size() < kept) absl::StrAppend(&text, ": ", ListNames(sorted.trained));
  if (imported != nullptr && sorted.chosen.empty() && !imported->says_frozen) {
    absl::StrAppend(&text,
                    ". A file does not say requires_grad=False, and one of dynamo=False not what is a buffer: name in "
                    "model.frozen what stays");
  }
  return {"trained", text};
}

// Nodes that draw random numbers. Those behind a dropout that says what it drops to draw in training alone.
struct Draws {
  std::vector<std::string> in_training, always;
};

Draws DrawsOf(const MetaGraph& metagraph) {
  const std::vector<Node>& nodes = metagraph.forward.nodes;
  std::set<std::string> evaluated(metagraph.forward.outputs.begin(), metagraph.forward.outputs.end());
  Draws draws;
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& node = nodes[i];
    const bool read = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](const auto& output) { return evaluated.count(output) != 0; });
    if (read && node.op == OpType::kDropout) evaluated.insert(node.inputs[0]);
    if (read && node.op != OpType::kDropout) evaluated.insert(node.inputs.begin(), node.inputs.end());
    const bool own = node.op == OpType::kUniformLike || node.op == OpType::kNormalLike;
    if (own) (read ? draws.always : draws.in_training).push_back(node.name);
  }
  std::reverse(draws.always.begin(), draws.always.end());
  std::reverse(draws.in_training.begin(), draws.in_training.end());
  return draws;
}

void AddNorms(const MetaGraph& metagraph, std::vector<AccountLine>* lines) {
  std::vector<std::string> trained, frozen;
  for (const Node& node : metagraph.forward.nodes) {
    if (node.op != OpType::kBatchNormalization || node.inputs.size() != 5) continue;
    const bool trains = std::get<BatchNormAttributes>(node.attributes).training_mode;
    (trains ? trained : frozen).push_back(NormOf(node.inputs[3]));
  }
  if (!trained.empty()) {
    lines->push_back({"norms", absl::StrCat(Counted(trained.size(), "batch normalisation"),
                                            " by the batch, with statistics that move",
                                            frozen.empty() ? "" : absl::StrCat(": ", ListNames(trained)))});
  }
  if (!frozen.empty()) {
    lines->push_back({"norms", absl::StrCat(Counted(frozen.size(), "batch normalisation"),
                                            " by statistics that stay: ", ListNames(frozen))});
  }
}

void AddGroups(const UpdateRule& update, std::vector<AccountLine>* lines) {
  for (const ParameterGroup& group : update.optimizer.groups) {
    std::string text = Counted(group.parameters.size(), "parameter");
    if (group.lr != update.schedule.lr) absl::StrAppend(&text, " at lr ", group.lr);
    if (group.weight_decay != update.optimizer.weight_decay) {
      absl::StrAppend(&text, " with weight_decay ", group.weight_decay);
    }
    lines->push_back({"group", absl::StrCat(text, ": ", ListNames(group.parameters))});
  }
}

}  // namespace

std::set<std::string> ReachedFrom(const Graph& graph, const std::string& output, bool through_stops) {
  std::set<std::string> reached = {output};
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (node.op == OpType::kIdentity && !through_stops) continue;
    const auto read = [&](const std::string& value) { return !value.empty() && reached.count(value) != 0; };
    if (std::any_of(node.outputs.begin(), node.outputs.end(), read)) {
      reached.insert(node.inputs.begin(), node.inputs.end());
    }
  }
  return reached;
}

absl::Status FreezeDetachedParameters(const std::string& loss, Graph* graph) {
  const std::set<std::string> reached = ReachedFrom(*graph, loss, false), read = ReachedFrom(*graph, loss, true);
  bool any = false;
  for (Variable& variable : graph->variables) {
    if (variable.kind != VariableKind::kParameter) continue;
    if (reached.count(variable.name) == 0 && read.count(variable.name) != 0) variable.kind = VariableKind::kFrozen;
    any = any || variable.kind == VariableKind::kParameter;
  }
  if (any) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no gradient of the loss '", loss,
                                                 "' reaches a parameter: detach() or model.stop_gradient stops all"));
}

std::vector<AccountLine> DescribeTraining(const MetaGraph& metagraph, const ImportNotes* imported) {
  const Sorted sorted = Sort(metagraph, imported);
  std::vector<AccountLine> lines = {Trained(sorted, imported)};
  const auto add = [&](const char* what, const std::vector<std::string>& names, const std::string& noun,
                       const std::string& why) {
    if (names.empty()) return;
    lines.push_back({what, absl::StrCat(Counted(names.size(), noun), " ", why, ": ", ListNames(names))});
  };
  const bool says = imported != nullptr && !imported->frozen.empty();
  add("kept", sorted.chosen, "parameter",
      says ? "by requires_grad=False in the file, or by the job" : "by model.trainable and model.frozen");
  add("kept", sorted.behind_stops, "parameter", "that no gradient reaches");
  add("kept", sorted.unread, "parameter", "without influence on the loss");
  AddNorms(metagraph, &lines);
  AddGroups(metagraph.update, &lines);
  const Draws draws = DrawsOf(metagraph);
  add("random", draws.in_training, "draw", "of random numbers in training alone");
  add("random", draws.always, "draw",
      "of random numbers in evaluations and in exported models too, where layers are left out whose class is called "
      "...Dropout, ...DropPath or StochasticDepth");
  std::vector<std::string> second;
  add("buffers", MovedStatistics(metagraph.forward), "buffer",
      "that forward changes, once a step: the mean of what its passes computed");
  add("buffers", sorted.buffers, "buffer", "constant");
  if (imported != nullptr) {
    add("loops", imported->loops, "loop", "written out, so that a step takes the time and memory of every trip");
    add("gradients", imported->stops, "value", "behind which no gradient goes");
  }
  if (imported != nullptr && imported->detach_lost) {
    lines.push_back({"gradients",
                     "nothing stops them: a file exported so has no trace of detach(), "
                     "one of torch.onnx.export(..., optimize=False) has"});
  }
  for (const StateAlias& alias : metagraph.aliases) {
    if (alias.of != kStepCounterName) second.push_back(absl::StrCat(alias.name, " (", alias.of, ")"));
  }
  add("tied", second, "parameter", "under a second name");
  return lines;
}

}  // namespace lockstep
