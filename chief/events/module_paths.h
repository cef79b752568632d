// Where the nodes of a graph stand among the modules of its model, as names with '/' that the graph tab folds.
//
// Threading: stateless.
#ifndef LOCKSTEP_CHIEF_EVENTS_MODULE_PATHS_H_
#define LOCKSTEP_CHIEF_EVENTS_MODULE_PATHS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/graph/ops/ir.h"

namespace lockstep::chief {

// A name of the model as a path, in the characters that names of TensorBoard's nodes may have: split at '/', or, where
// it has none, at PyTorch's '.'.
std::string ModulePath(absl::string_view name);

struct ModulePaths {
  std::vector<std::string> nodes;      // in the order of the graph
  std::vector<std::string> constants;  // likewise
};

// A name with a path is kept. A node without one stands in the module of the first variable that it reads. One that
// reads none stands in the innermost module that the nearest nodes with a module before and after it share: exporters
// write nodes as the model's code runs. A constant stands with the first node that reads it. Paths may be equal.
ModulePaths FindModulePaths(const Graph& graph);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_MODULE_PATHS_H_
