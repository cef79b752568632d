// Executes one node on host tensors with the reference kernels. The importer folds constants with it, so that the
// semantics of an op exist only once.
//
// Threading: thread-safe; blocks while it computes.
#ifndef LOCKSTEP_WORKER_DEVICE_CHOICE_EVALUATE_NODE_H_
#define LOCKSTEP_WORKER_DEVICE_CHOICE_EVALUATE_NODE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/ops/ir.h"
#include "common/tensor/tensor.h"

namespace lockstep::device {

// Returns all outputs of the node, used or not. `inputs` has one entry per input, null for an omitted one.
// InvalidArgument when the inputs do not fit the op, Unimplemented for an element type without a kernel.
absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Node& node, absl::Span<const Tensor* const> inputs);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_CHOICE_EVALUATE_NODE_H_
