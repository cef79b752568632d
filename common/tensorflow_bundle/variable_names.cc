#include "common/tensorflow_bundle/variable_names.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// What TensorFlow's own optimizers append to a variable's name for what they keep of it, and BERT's.
constexpr absl::string_view kSlotNames[] = {"Adadelta",  "Adadelta_1", "Adagrad",  "Adam",    "Adam_1",
                                            "Ftrl",      "Ftrl_1",     "Momentum", "RMSProp", "RMSProp_1",
                                            "RMSProp_2", "adam_m",     "adam_v"};
constexpr absl::string_view kScalarNames[] = {"beta1_power", "beta2_power", "global_step"};

template <typename Names>
bool Contains(const Names& names, absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// In a checkpoint that goes by names, only names tell.
bool IsOfOptimizer(const BundleIndex& index, const BundleEntry& entry) {
  const size_t slash = entry.key.rfind('/');
  const std::string last = slash == std::string::npos ? entry.key : entry.key.substr(slash + 1);
  if (entry.shape.empty() && Contains(kScalarNames, last)) return true;
  if (slash == std::string::npos || !Contains(kSlotNames, last)) return false;
  const BundleEntry* const of = index.Find(absl::string_view(entry.key).substr(0, slash));
  return of != nullptr && of->shape == entry.shape;
}

std::string NameOf(const ObjectPath& path, bool without_model) {
  const bool cut = without_model && path.size() > 1 && path.front() == kModelObject;
  return absl::StrJoin(path.begin() + (cut ? 1 : 0), path.end(), ".");
}

}  // namespace

absl::Status VariableNames::Take(const BundleIndex& index, const std::vector<std::pair<ObjectPath, size_t>>& paths) {
  std::set<std::string> short_names;
  for (const auto& [path, entry] : paths) short_names.insert(NameOf(path, /*without_model=*/true));
  const bool without_model = short_names.size() == paths.size();
  std::map<std::string, size_t> seen;
  for (const auto& [path, entry] : paths) {
    variables_.push_back({NameOf(path, without_model), entry});
    const auto [other, is_new] = seen.emplace(variables_.back().name, entry);
    if (is_new) continue;
    return absl::InvalidArgumentError(absl::StrCat("its variables ", absl::CHexEscape(index.entries[other->second].key),
                                                   " and ", absl::CHexEscape(index.entries[entry].key),
                                                   " both come to the name ", absl::CHexEscape(other->first)));
  }
  return absl::OkStatus();
}

absl::StatusOr<VariableNames> VariableNames::OfObjects(const BundleIndex& index, absl::string_view graph) {
  VariableNames names;
  LS_ASSIGN_OR_RETURN(names.graph_, ObjectGraph::Parse(graph));
  std::vector<std::pair<ObjectPath, size_t>> paths;
  const std::vector<ObjectGraph::Variable>& all = names.graph_->variables();
  for (size_t i = 0; i < all.size(); ++i) {
    const BundleEntry* const entry = index.Find(all[i].key);
    if (entry == nullptr) {
      return absl::DataLossError(absl::StrCat("the graph of its objects names the variable '",
                                              absl::CHexEscape(all[i].key), "', which the index lacks"));
    }
    if (all[i].path.empty()) {
      names.of_optimizers_ += all[i].key == VariableKey({kSaveCounterObject}) ? 0 : 1;
      continue;
    }
    names.by_graph_.emplace(i, paths.size());
    paths.emplace_back(all[i].path, static_cast<size_t>(entry - index.entries.data()));
  }
  LS_RETURN_IF_ERROR(names.Take(index, paths));
  return names;
}

absl::StatusOr<VariableNames> VariableNames::OfNames(const BundleIndex& index) {
  VariableNames names;
  std::vector<std::pair<ObjectPath, size_t>> paths;
  PathBounds bounds;
  for (size_t i = 0; i < index.entries.size(); ++i) {
    const BundleEntry& entry = index.entries[i];
    if (absl::StartsWith(entry.key, absl::string_view("\0", 1))) continue;  // a slice of a partitioned variable
    if (IsOfOptimizer(index, entry)) {
      ++names.of_optimizers_;
      continue;
    }
    LS_RETURN_IF_ERROR(bounds.Add(entry.key.size()));
    paths.emplace_back(absl::StrSplit(entry.key, '/'), i);
  }
  LS_RETURN_IF_ERROR(names.Take(index, paths));
  return names;
}

std::optional<size_t> VariableNames::FindSecondName(absl::string_view name) const {
  const std::optional<size_t> found = graph_.has_value() ? graph_->Find(name) : std::nullopt;
  if (!found.has_value()) return std::nullopt;
  const auto variable = by_graph_.find(*found);
  return variable == by_graph_.end() ? std::nullopt : std::optional(variable->second);
}

}  // namespace lockstep
