// Executes one node on host tensors with the reference kernels: how an import folds constants, so that the meaning of
// an op is written once.
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

// All outputs of the node, used or not. `inputs` has an entry per input of the node, null for an omitted one.
// InvalidArgument when they do not fit the op, Unimplemented for an element type that it has no kernel for.
absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Node& node, absl::Span<const Tensor* const> inputs);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_CHOICE_EVALUATE_NODE_H_
