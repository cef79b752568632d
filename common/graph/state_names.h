// Names of a model's state dict: lists of them for messages, and the layers that they name.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_STATE_NAMES_H_
#define LOCKSTEP_COMMON_GRAPH_STATE_NAMES_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// "a, b, c and 4 more": a message names at most eight.
template <typename Names>
std::string ListNames(const Names& all) {
  constexpr size_t kShown = 8;
  std::vector<std::string> names(all.begin(), all.end());
  if (names.size() > kShown) names.resize(kShown);
  return absl::StrCat(absl::StrJoin(names, ", "),
                      all.size() > kShown ? absl::StrCat(" and ", all.size() - kShown, " more") : "");
}

// The layer that a tensor of the state dict belongs to: "encoder.0" of "encoder.0.weight", empty for the model itself.
inline std::string LayerOf(absl::string_view name) {
  const size_t dot = name.rfind('.');
  return std::string(dot == absl::string_view::npos ? "" : name.substr(0, dot));
}

// The name within its layer: "weight" of "encoder.0.weight".
inline std::string LeafOf(absl::string_view name) { return std::string(name.substr(name.rfind('.') + 1)); }

// The batch normalisation whose running mean this is, as its model calls it.
inline std::string NormOf(absl::string_view mean) {
  absl::ConsumeSuffix(&mean, ".running_mean");
  return std::string(mean);
}

inline bool HasVariable(const Graph& graph, absl::string_view name) {
  return std::any_of(graph.variables.begin(), graph.variables.end(),
                     [&](const Variable& variable) { return variable.name == name; });
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_STATE_NAMES_H_
