// Assigns the nodes of a graph to the modules of its model, as names with '/' that the graph tab folds.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_CHIEF_EVENTS_MODULE_PATHS_H_
#define LOCKSTEP_CHIEF_EVENTS_MODULE_PATHS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/graph/ops/ir.h"

namespace lockstep::chief {

// Converts a name of the model to a path, in the characters that TensorBoard allows: split at '/' or, if it has none,
// at PyTorch's '.'.
std::string ModulePath(absl::string_view name);

struct ModulePaths {
  std::vector<std::string> nodes;      // in the order of the graph
  std::vector<std::string> constants;  // in the order of the graph
};

// A name that has a path is kept. A node without one belongs to the module of the first variable that it reads. A node
// that reads none belongs to the innermost module shared by the nearest nodes with a module before and after it, as
// exporters write nodes in the order of the model's code. A constant belongs to the first node that reads it. Paths
// need not be unique.
ModulePaths FindModulePaths(const Graph& graph);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_MODULE_PATHS_H_
