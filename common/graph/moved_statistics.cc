#include "common/graph/moved_statistics.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace lockstep {

std::string MovedValueName(absl::string_view variable) { return absl::StrCat("stat.", variable); }

std::vector<std::string> MovedStatistics(const Graph& graph) {
  std::set<std::string> given;
  for (const Node& node : graph.nodes) given.insert(node.outputs.begin(), node.outputs.end());
  std::vector<std::string> moved;
  for (const Variable& variable : graph.variables) {
    if (variable.kind != VariableKind::kStatistic || given.count(MovedValueName(variable.name)) == 0) continue;
    moved.push_back(variable.name);
  }
  return moved;
}

}  // namespace lockstep
