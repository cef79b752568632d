#include "common/graph/training_account.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/graph/moved_statistics.h"

namespace lockstep {
namespace {

// How many names a line lists.
constexpr size_t kShown = 8;

std::string ListOf(std::vector<std::string> names) {
  const size_t all = names.size();
  if (all > kShown) names.resize(kShown);
  return absl::StrCat(absl::StrJoin(names, ", "), all > kShown ? absl::StrCat(" and ", all - kShown, " more") : "");
}

std::string Counted(size_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string LayerOf(absl::string_view mean) {
  absl::ConsumeSuffix(&mean, ".running_mean");
  return std::string(mean);
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
  if (sorted.trained.size() < kept) absl::StrAppend(&text, ": ", ListOf(sorted.trained));
  if (imported != nullptr && sorted.chosen.empty()) {
    absl::StrAppend(&text, ". A file does not say requires_grad=False: name such parameters in model.frozen");
  }
  return {"trained", text};
}

void AddNorms(const MetaGraph& metagraph, std::vector<AccountLine>* lines) {
  std::vector<std::string> trained, frozen;
  for (const Node& node : metagraph.forward.nodes) {
    if (node.op != OpType::kBatchNormalization || node.inputs.size() != 5) continue;
    const bool trains = std::get<BatchNormAttributes>(node.attributes).training_mode;
    (trains ? trained : frozen).push_back(LayerOf(node.inputs[3]));
  }
  if (!trained.empty()) {
    lines->push_back({"norms", absl::StrCat(Counted(trained.size(), "batch normalisation"),
                                            " by the batch, with statistics that move",
                                            frozen.empty() ? "" : absl::StrCat(": ", ListOf(trained)))});
  }
  if (!frozen.empty()) {
    lines->push_back({"norms", absl::StrCat(Counted(frozen.size(), "batch normalisation"),
                                            " by statistics that stay: ", ListOf(frozen))});
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

std::vector<AccountLine> DescribeTraining(const MetaGraph& metagraph, const ImportNotes* imported) {
  const Sorted sorted = Sort(metagraph, imported);
  std::vector<AccountLine> lines = {Trained(sorted, imported)};
  const auto add = [&](const char* what, const std::vector<std::string>& names, const std::string& noun,
                       const std::string& why) {
    if (names.empty()) return;
    lines.push_back({what, absl::StrCat(Counted(names.size(), noun), " ", why, ": ", ListOf(names))});
  };
  add("kept", sorted.chosen, "parameter", "by model.trainable and model.frozen");
  add("kept", sorted.behind_stops, "parameter", "that no gradient reaches");
  add("kept", sorted.unread, "parameter", "without influence on the loss");
  AddNorms(metagraph, &lines);
  std::vector<std::string> second;
  add("buffers", MovedStatistics(metagraph.forward), "buffer",
      "that forward changes, once a step: the mean of what its passes computed");
  add("buffers", sorted.buffers, "buffer", "constant");
  if (imported != nullptr) add("gradients", imported->stops, "value", "behind which no gradient goes");
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
