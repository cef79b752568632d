// Reverse-mode differentiation. Nodes are visited in reverse order and contributions to one value are added in the
// order in which they come up, so the emitted nodes, and with them the bits, follow from the graph alone. Gradients of
// late layers are ready first.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_DIFFERENTIATE_H_
#define LOCKSTEP_COMMON_GRAPH_DIFFERENTIATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// The constant 1 that the loss's own gradient begins with. Emitted values are called "lockstep.grad.<node>.<suffix>"
// and, where contributions are added, "lockstep.gradsum.<value>.<n>".
inline constexpr char kGradientSeed[] = "lockstep.grad.seed";

// Appends to `graph` (values inferred) what computes the gradients of the scalar `loss` and returns, per target (an
// input or a variable), the value that holds its gradient; empty when the loss does not depend on it.
// InvalidArgument names a node that lies between a target and the loss and cannot be differentiated.
absl::StatusOr<std::vector<std::string>> Differentiate(Graph* graph, const std::string& loss,
                                                       absl::Span<const std::string> targets);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_DIFFERENTIATE_H_
