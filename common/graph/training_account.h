// Describes in words what training will change: how much is trained, what stays fixed and why, what changes without
// gradients, where gradients stop. A model file does not state all of the user's intentions, so `lockstep check` and
// the chief print how they understood it, and name what is unusual.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_TRAINING_ACCOUNT_H_
#define LOCKSTEP_COMMON_GRAPH_TRAINING_ACCOUNT_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/metagraph.h"

namespace lockstep {

// Facts that an importer knows and the metagraph does not hold.
struct ImportNotes {
  std::set<std::string> parameters;  // variables that the model calls parameters, trained or not
  std::vector<std::string> stops;    // values of the file through which no gradient flows
  std::vector<std::string> loops;    // loops that are written out, with their trips
  bool detach_lost = false;          // the exporter is one that leaves no trace of detach()
  bool says_frozen = false;          // the file says which parameters have requires_grad=False: `frozen`
  std::vector<std::string> frozen = {};
};

struct AccountLine {
  std::string what;  // "trained", "kept", ...
  std::string text;
};

// The first line says what is trained. `imported` is null for a built-in model.
std::vector<AccountLine> DescribeTraining(const MetaGraph& metagraph, const ImportNotes* imported);

// The values that `output` depends on. Unless `through_stops`, the search does not go through Identity nodes, which
// stop gradients.
std::set<std::string> ReachedFrom(const Graph& graph, const std::string& output, bool through_stops);

// Freezes the parameters that `loss` depends on only through detached values, which get no gradient in PyTorch either.
// InvalidArgument when no parameter is left to train.
absl::Status FreezeDetachedParameters(const std::string& loss, Graph* graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_TRAINING_ACCOUNT_H_
