// Fills in the window attributes that ONNX lets a model omit, from shapes that are known: the op set's canonical form
// has explicit kernel sizes and pads.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_AUTO_PAD_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_AUTO_PAD_H_

#include "absl/status/status.h"
#include "common/graph/ops/op_type.h"
#include "common/graph/ops/raw_attributes.h"
#include "common/tensor/shape.h"

namespace lockstep {

// Conv, ConvTranspose, MaxPool and AveragePool: sets kernel_shape (from `weights`, null for poolings) and pads, and
// takes auto_pad and output_shape away. SAME_UPPER and SAME_LOWER give ceil(size / stride) windows, or size * stride
// elements of a transposed convolution, and put an odd element of padding at the end and at the beginning respectively.
// Other ops are left as they are. InvalidArgument where the attributes contradict the shapes; the error names neither
// node nor op.
absl::Status FillWindow(OpType op, const Shape& input, const Shape* weights, RawAttributes* raw);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_AUTO_PAD_H_
