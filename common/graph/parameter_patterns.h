// Selects parameters by the patterns of a job file: shell patterns (* ? [...]) that match whole names.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_PARAMETER_PATTERNS_H_
#define LOCKSTEP_COMMON_GRAPH_PARAMETER_PATTERNS_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// The names of the parameters that match one of `patterns`. InvalidArgument for a pattern that nothing matches; `key`
// is the job's key that holds it.
absl::StatusOr<std::set<std::string>> MatchParameters(const Graph& graph, absl::Span<const std::string> patterns,
                                                      absl::string_view key);

// The same for any names; `what` says in the error what the names are.
absl::StatusOr<std::set<std::string>> MatchNames(absl::Span<const std::string> names,
                                                 absl::Span<const std::string> patterns, absl::string_view key,
                                                 absl::string_view what);

// Freezes every parameter that matches no pattern of `trainable` (when empty, all match) or matches one of `frozen`.
// InvalidArgument for a pattern that nothing matches, or when nothing is left to train.
absl::Status ChooseTrained(Graph* graph, absl::Span<const std::string> trainable, absl::Span<const std::string> frozen);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PARAMETER_PATTERNS_H_
