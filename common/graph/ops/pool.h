// Pooling with two spatial dimensions, layout NCHW. Padding never wins a maximum; a NaN in a window does; of equal
// maxima the first in row-major order of the window wins (PyTorch's convention, which decides where gradients go).
//
//   MaxPool(X) -> Y
//   lockstep.MaxPoolWithArgmax(X) -> Y, Argmax    Argmax I32, shape of Y: h * W + w of the winner in its input plane
//   lockstep.MaxPoolGrad(dY, Argmax) -> dX        shape of dX: the attribute input_shape
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_POOL_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_POOL_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct PoolAttributes {
  std::vector<int64_t> kernel_shape;  // {kh, kw}
  std::vector<int64_t> strides = {1, 1};
  std::vector<int64_t> pads = {0, 0, 0, 0};  // {top, left, bottom, right}
  std::vector<int64_t> dilations = {1, 1};
  bool ceil_mode = false;
  // The whole shape of X; only MaxPoolGrad has it.
  std::vector<int64_t> input_shape;
  friend bool operator==(const PoolAttributes&, const PoolAttributes&) = default;
};

absl::Span<const OpSchema> PoolFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_POOL_H_
