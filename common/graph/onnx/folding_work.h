// Estimates the work of folding a node whose inputs are constants. The importer limits the sum, so that a small file
// cannot keep it busy for hours.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_FOLDING_WORK_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_FOLDING_WORK_H_

#include "absl/types/span.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// Limit for all nodes of a model together: about a minute of the reference kernels.
inline constexpr double kMaxFoldedWork = 0x1p34;

// About how many elements are read or multiplied. Entries of `inputs` are null for omitted inputs. REQUIRES: shape
// inference has accepted the node.
double FoldingWork(const Node& node, absl::Span<const ValueInfo* const> inputs, absl::Span<const ValueInfo> outputs);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_FOLDING_WORK_H_
