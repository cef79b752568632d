// Reverse-mode differentiation. Nodes are visited in reverse order, and contributions to one value are added in the
// order in which they arise, so the emitted nodes, and with them the bits, depend on the graph alone. Gradients of late
// layers are ready first.
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

// The constant 1, the gradient of the loss with respect to itself. Emitted values are called
// "lockstep.grad.<node>.<suffix>" and, where contributions are added, "lockstep.gradsum.<value>.<n>".
inline constexpr char kGradientSeed[] = "lockstep.grad.seed";

// Appends to `graph` the nodes that compute the gradients of the scalar `loss`. Returns, per target (an input or a
// variable), the name of its gradient, or "" when the loss does not depend on it. InvalidArgument names a node between
// a target and the loss that cannot be differentiated. REQUIRES: values are inferred.
absl::StatusOr<std::vector<std::string>> Differentiate(Graph* graph, const std::string& loss,
                                                       absl::Span<const std::string> targets);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_DIFFERENTIATE_H_
