#include "common/graph/parameter_patterns.h"

#include <fnmatch.h>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::StatusOr<std::set<std::string>> MatchParameters(const Graph& graph, absl::Span<const std::string> patterns,
                                                      absl::string_view key) {
  std::set<std::string> matched;
  for (const std::string& pattern : patterns) {
    bool any = false;
    std::string example;
    for (const Variable& variable : graph.variables) {
      if (variable.kind != VariableKind::kParameter) continue;
      if (example.empty()) example = variable.name;
      if (fnmatch(pattern.c_str(), variable.name.c_str(), 0) != 0) continue;
      any = true;
      matched.insert(variable.name);
    }
    if (!any) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, ": no parameter matches '", pattern, "'; the first parameter is called '", example, "'"));
    }
  }
  return matched;
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
  return absl::InvalidArgumentError("model.trainable and model.frozen leave no parameter to train");
}

}  // namespace lockstep
