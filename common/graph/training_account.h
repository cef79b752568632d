// What training will do to a model, in words: how much is trained, what stays and why, what moves otherwise, where
// gradients stop. A file does not say everything that a user may have meant, so `lockstep check` and the chief say what
// was understood, by name where it is unusual.
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

// What an importer knows beyond the metagraph.
struct ImportNotes {
  std::set<std::string> parameters;  // variables that the model calls parameters, trained or not
  std::vector<std::string> stops;    // values of the file behind which nothing is differentiated
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

// The values that `output` depends on; without those that lie behind an Identity unless `through_stops`.
std::set<std::string> ReachedFrom(const Graph& graph, const std::string& output, bool through_stops);

// As in PyTorch, a parameter that the loss depends on only through detached values gets no gradient and stays.
// InvalidArgument where none is left.
absl::Status KeepBehindStops(const std::string& loss, Graph* graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_TRAINING_ACCOUNT_H_
