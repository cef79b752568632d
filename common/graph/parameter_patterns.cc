#include "common/graph/parameter_patterns.h"

#include <fnmatch.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::StatusOr<std::set<std::string>> MatchNames(absl::Span<const std::string> names,
                                                 absl::Span<const std::string> patterns, absl::string_view key,
                                                 absl::string_view what) {
  std::set<std::string> matched;
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (const std::string& name : names) {
      if (fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
      any = true;
      matched.insert(name);
    }
    if (any) continue;
    if (names.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(key, ": '", pattern, "' is given, and the model has no ", what));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(key, ": no ", what, " matches '", pattern, "'; the first ", what, " is called '", names[0], "'"));
  }
  return matched;
}

absl::StatusOr<std::set<std::string>> MatchParameters(const Graph& graph, absl::Span<const std::string> patterns,
                                                      absl::string_view key) {
  std::vector<std::string> names;
  for (const Variable& variable : graph.variables) {
    if (variable.kind == VariableKind::kParameter) names.push_back(variable.name);
  }
  return MatchNames(names, patterns, key, "parameter");
}

absl::Status ChooseTrained(Graph* graph, absl::Span<const std::string> trainable,
                           absl::Span<const std::string> frozen) {
  LS_ASSIGN_OR_RETURN(const std::set<std::string> wanted, MatchParameters(*graph, trainable, "model.trainable"));
  LS_ASSIGN_OR_RETURN(const std::set<std::string> unwanted, MatchParameters(*graph, frozen, "model.frozen"));
  bool any = false;
  for (Variable& variable : graph->variables) {
    if (variable.kind != VariableKind::kParameter) continue;
    const bool trained = (trainable.empty() || wanted.count(variable.name) != 0) && unwanted.count(variable.name) == 0;
    if (!trained) variable.kind = VariableKind::kFrozen;
    any = any || trained;
  }
  if (any) return absl::OkStatus();
  if (trainable.empty() && frozen.empty()) {
    return absl::InvalidArgumentError("nothing in the model reads a parameter: there is nothing to train");
  }
  return absl::InvalidArgumentError("model.trainable and model.frozen leave no parameter to train");
}

}  // namespace lockstep
