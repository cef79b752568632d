// How long it takes to compute a node whose inputs are constants, so that a small file cannot keep its reader busy.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_FOLDING_WORK_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_FOLDING_WORK_H_

#include "absl/types/span.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// All nodes of a model together: about a minute of the reference kernels.
inline constexpr double kMaxFoldedWork = 0x1p34;

// About how many elements are read or multiplied. `inputs` are null where they are left out. REQUIRES: shape inference
// has accepted them.
double FoldingWork(const Node& node, absl::Span<const ValueInfo* const> inputs, absl::Span<const ValueInfo> outputs);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_FOLDING_WORK_H_
